# SPDX-License-Identifier: MIT
"""Programs that do what no op shows, each in a way of its own; see unseen_test.py."""
from train_test import BEGIN

LAYERS = BEGIN + """
    import numpy
    def layers(count=6): return nn.ModuleList(nn.Linear(128, 128) for _ in range(count))
    """

STEPS = """
    model = layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        loss = forward(step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, loss.item().hex())
    digest([model], [optimizer])
    """

# A batch is made by torch.zeros and filled through numpy; the batch itself is gone when it is used.
FILLED = LAYERS + """
    random = numpy.random.default_rng(0)
    def batch():
        made = torch.zeros(512, 128)
        made.numpy()[:] = random.standard_normal((512, 128), dtype="float32")
        return made * 0.5 + 0.1
    def forward(step):
        x = batch()
        h = x.sin() * x.cos()
        for layer in model: h = layer(h)
        return h.pow(2).mean()
    """ + STEPS

# What a batch is multiplied by comes from a list, and is gone when the product is recomputed.
FLEETING = LAYERS + """
    data = torch.randn(2000, 128)
    def forward(step):
        h = data * torch.tensor([1.0, 0.5] * 64)
        for layer in model: h = layer(h).tanh()
        return h.pow(2).mean()
    """ + STEPS

# One buffer, filled again for each part of a step.
REFILLED = LAYERS + """
    random, buffer = numpy.random.default_rng(0), numpy.zeros((512, 128), "float32")
    batch = torch.from_numpy(buffer)
    def forward(step):
        loss = 0
        for layer in model:
            buffer[:] = random.standard_normal(buffer.shape, dtype="float32")
            loss = loss + layer(batch / 2).pow(2).mean()
        return loss
    """ + STEPS

# A setting of the thread holds for a part of the forward pass.
SETTINGS = LAYERS + """
    def part(h):
        torch.set_flush_denormal(True)
        t = torch.exp(h * 20 - 95) * 0.5
        torch.set_flush_denormal(False)
        return t * 1e35 * 1e3
    def forward(step):
        h = torch.randn(512, 128)
        for layer in model[:3]: h = layer(h)
        r = part(h) + part(h * 0.5)
        for layer in model[3:]: h = layer(h)
        return (h * r).pow(2).mean()
    """ + STEPS

# An op of Python's counts its calls and draws random numbers.
OPS = LAYERS + """
    library, calls = torch.library.Library("unseen", "DEF"), [0]
    library.define("noisy(Tensor x) -> Tensor")
    def noisy(x):
        calls[0] += 1
        return x + torch.rand_like(x) * 0.1
    library.impl("noisy", noisy, "CPU")
    def forward(step):
        h = torch.randn(512, 128)
        for layer in model: h = torch.tanh(layer(h)) + torch.ops.unseen.noisy(h.detach()).sin() * 0.1
        print("calls", calls[0])
        return h.pow(2).mean()
    """ + STEPS

# Integers in two dimensions, away when they are flattened; a sparse tensor keeps what ops have made; each element by
# Python.
OTHERS = LAYERS + """
    def forward(step):
        h = torch.randn(256, 128)
        indices = (h.detach() * 3).argsort(1)
        at = torch.stack([torch.arange(5000) % 256, torch.arange(5000) % 256])
        sparse = torch.sparse_coo_tensor(at, torch.ones(5000) * 0.5, (256, 256))
        mapped = torch.randint(0, 10, (64, 64)) + 0
        del at
        for layer in model: h = torch.tanh(layer(h))
        mapped.apply_(lambda k: (k * 7) % 5)
        weights = mapped.float().sin()
        return h.view(-1)[indices.view(-1)].pow(2).mean() + torch.sparse.mm(sparse, h).pow(2).mean() * weights.mean()
    """ + STEPS

# A scripted function reads tensors as lists, and one that it makes itself.
SCRIPTED = LAYERS + """
    from typing import List
    @torch.jit.script
    def first(x: torch.Tensor) -> float:
        rows: List[List[float]] = x.tolist()
        made = x * 2
        others: List[List[float]] = made.tolist()
        return rows[0][0] + others[1][1]
    def forward(step):
        h = torch.randn(512, 128)
        t = torch.sin(h)
        u = t.exp()
        for layer in model: h = torch.tanh(layer(h)) * u
        return h.pow(2).mean() * (1 + first(t) * first(u))
    """ + STEPS

# Elements that several threads add to, in whatever order.
UNORDERED = LAYERS + """
    import sys
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(sys.argv[1:] == ["deterministic"])
    def forward(step):
        h, at = torch.randn(512, 128), torch.randint(0, 64, (512,))
        for layer in model: h = torch.sigmoid(torch.zeros_like(h).index_put((at,), torch.tanh(layer(h)), accumulate=True))
        return h.pow(2).mean()
    """ + STEPS

# Memory that the program lends to a tensor and takes back: a file is closed, pages are unmapped. Nothing holds it.
LENT = LAYERS + """
    import ctypes, mmap, weakref
    libc, size, kept = ctypes.CDLL(None), 4 * 512 * 128, []
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    random = numpy.random.default_rng(0)
    def numbers(): return random.standard_normal((512, 128), dtype="float32")
    def from_file():
        file = mmap.mmap(-1, size)
        file.write(numbers().tobytes())
        made = torch.from_numpy(numpy.frombuffer(file, dtype="float32").reshape(512, 128)).exp()
        file.close()
        return made
    def from_pages(at):
        pages = libc.mmap(0x600000000000 + 2 * size * at, size, 3, 0x22, -1, 0)
        array = numpy.ctypeslib.as_array((ctypes.c_float * (512 * 128)).from_address(pages)).reshape(512, 128)
        array[:] = numbers()
        made = torch.from_numpy(array).exp()
        libc.munmap(pages, size)
        return made
    def from_array():
        array = numbers()
        kept.append(weakref.ref(array))
        return torch.from_numpy(array).exp()
    def forward(step):
        a, b, c = from_file(), from_pages(step), from_array()
        print("gone", [each() is None for each in kept])
        h = a * b + c
        for layer in model: h = torch.tanh(layer(h)) * b
        return (h * torch.tanh(a) * b * c).pow(2).mean()
    """ + STEPS

# Batch norm updates its running statistics without saying so. They are read before that: into tensors that were made
# empty, for a loss of statistics, by the norm in evaluation, and by averages of the whole state between the steps.
STATISTICS = LAYERS + """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm = nn.Linear(128, 128), nn.BatchNorm1d(128)
        def forward(self, x):
            x, centred = self.linear(x), torch.empty(512, 128)
            torch.sub(x.detach(), self.norm.running_mean, out=centred)
            self.loss = ((x - self.norm.running_mean) / (self.norm.running_var + 1e-5).sqrt()).pow(2).mean()
            self.norm.eval()
            with torch.no_grad(): settled = self.norm(x)
            self.norm.train()
            return torch.tanh(self.norm(x)) * torch.sigmoid(centred) + settled
    def layers(): return nn.Sequential(*[Block() for _ in range(5)])
    averages = {}
    def forward(step):
        for name, value in model.state_dict().items():
            if name in averages and value.is_floating_point(): averages[name].mul_(0.9).add_(value, alpha=0.1)
            else: averages[name] = value.clone()
        loss = model(torch.randn(512, 128)).pow(2).mean() + sum(block.loss for block in model)
        return loss + sum(value.double().sum() for value in averages.values()).float() * 0
    """ + STEPS + """
    print("averages", [value.double().sum().item().hex() for value in averages.values()])
    """

# Memory of plain tensors that ops reach through others: a subclass with a dispatch of its own looks at it, and a sparse
# tensor is scaled in place after its values were read.
HIDDEN = LAYERS + """
    class Observed(torch.Tensor):
        @staticmethod
        def __new__(cls, x): return torch.Tensor._make_subclass(cls, x)
        __torch_function__ = torch._C._disabled_torch_function_impl
        @classmethod
        def __torch_dispatch__(cls, function, types, arguments=(), named=None):
            guard = torch._C._DisableTorchDispatch()
            try: return function(*arguments, **(named or {}))
            finally: del guard
    at = torch.stack([torch.arange(512), torch.arange(512) * 3])
    def forward(step):
        seen, read, h = [], [], torch.randn(512, 128)
        for layer in model:
            h = torch.tanh(layer(h))
            with torch.no_grad():
                seen.append(Observed(torch.sin(h)))
                sparse = torch.sparse_coo_tensor(at, torch.randn(512, 128), (512, 2000, 128)).coalesce()
                read.append(torch.tanh(sparse.values() * 3))
                sparse.div_(4)
        scale = sum((each * 2).sum().item() for each in seen)
        print("seen", scale.hex())
        return (h * sum(read)).pow(2).mean() * (1 + scale * 1e-6)
    """ + STEPS

# Kernels in Python: of an op of the program's, and of one of the framework's. They count their calls. The script's name
# does not say that it is Python.
KERNELS = LAYERS + """
    library, framework, calls = torch.library.Library("unseen", "DEF"), torch.library.Library("aten", "IMPL"), [0, 0]
    library.define("doubled(Tensor x) -> Tensor")
    def doubled(x):
        calls[0] += 1
        return x * 2
    library.impl("doubled", doubled, "CPU")
    def erf(x):
        calls[1] += 1
        return torch.tanh(x * 1.128)
    framework.impl("erf", erf, "CPU")
    def forward(step):
        h = torch.randn(512, 128)
        for layer in model:
            h = torch.tanh(layer(h))
            with torch.no_grad(): e, d = torch.erf(h), torch.ops.unseen.doubled(h)
            h = h * e + torch.cos(d)
        print("calls", calls)
        return h.pow(2).mean()
    """ + STEPS

# A scripted module is saved in the middle of a step, and addresses are given out by functions that only some versions have.
SAVED = LAYERS + """
    import ctypes, hashlib, io
    class Memory(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(128, 128)
            self.register_buffer("memory", torch.zeros(512, 128))
        def forward(self, x):
            y = torch.tanh(self.linear(x))
            self.memory = torch.sin(self.memory * 0.9 + y.detach() * 0.1)
            return y + self.memory * 0.1
    def layers(): return nn.ModuleList(torch.jit.script(Memory()) for _ in range(5))
    def read(x): return x.const_data_ptr() if hasattr(x, "const_data_ptr") else x.data_ptr()
    def forward(step):
        h, seen = torch.randn(512, 128), []
        for layer in model:
            h = layer(h)
            seen.append(torch.sin(h.detach()))
            h = h * torch.exp(-seen[-1])
        for layer in model:
            file = io.BytesIO()
            torch.jit.save(layer, file)
            file.seek(0)
            print("saved", torch.jit.load(file).memory.double().sum().item().hex())
        print("read", hashlib.md5(b"".join(ctypes.string_at(read(x), 4 * x.numel()) for x in seen)).hexdigest())
        return h.pow(2).mean()
    """ + STEPS

# Threads that began before torch was imported, and one that is no threading.Thread, evaluate what they are handed.
THREADS = """
    import _thread, queue, threading
    asked, answers = queue.Queue(), queue.Queue()
    def work():
        while True: answers.put(asked.get()())
    threading.Thread(target=work, daemon=True).start()
    """ + LAYERS + """
    _thread.start_new_thread(work, ())
    def forward(step):
        seen, h = [], torch.randn(512, 128)
        for layer in model:
            h = torch.tanh(layer(h))
            seen.append(torch.sin(h.detach()))
            h = h * torch.cos(seen[-1])
        for x in seen: asked.put(lambda x=x: x.double().pow(2).sum().item())
        print("answers", sorted(answers.get() for _ in seen))
        return h.pow(2).mean()
    """ + STEPS

# An op warns whenever it runs, and the program counts.
WARNED = LAYERS + """
    import warnings
    told, pool = [], nn.functional
    warnings.simplefilter("always")
    warnings.showwarning = lambda message, *_: told.append(str(message)[:20])
    torch.use_deterministic_algorithms(True, warn_only=True)
    def forward(step):
        h = torch.randn(512, 128)
        for layer in model:
            h = torch.tanh(layer(h))
            pooled, at = pool.max_pool2d(h.view(1, 1, 512, 128), 2, return_indices=True)
            h = h + torch.tanh(pool.max_unpool2d(pooled, at, 2)).view(512, 128)
        print("told", len(told), sorted(set(told)))
        return h.pow(2).mean()
    """ + STEPS + """
    print("told", len(told))
    """

# Frames, places of warnings, functions of the framework and what is told of threads, in the lines.
LOOKED = LAYERS + """
    import _thread, hashlib, inspect, pickle, sys, threading, traceback, warnings
    def told(error): traceback.print_exception(type(error), error, error.__traceback__, file=sys.stdout)
    threading.excepthook = lambda each: told(each.exc_value)
    done = threading.Event()
    sys.unraisablehook = lambda each: (told(each.exc_value), print(each.object.__name__), done.set())
    def wrong(): raise ValueError(len(inspect.stack()))
    class Looks(torch.autograd.Function):
        @staticmethod
        def forward(_, x): return x * 1
        @staticmethod
        def backward(_, gradient):
            print([each.function for each in inspect.stack()])
            return gradient
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(128, 128)
        def forward(self, x):
            print([each.function for each in inspect.stack()])
            warnings.warn("a block", stacklevel=2)
            try: self.inner(torch.ones(3, 3))
            except RuntimeError as error: told(error)
            return torch.tanh(self.inner(x).sin().exp())
    def layers(): return nn.Sequential(*[Block() for _ in range(4)])
    warnings.simplefilter("always")
    warnings.showwarning = lambda *each: print(each[1].__name__, each[2], each[3])
    functions = (torch.Tensor.numpy, torch.Tensor.storage, torch.set_rng_state, torch.utils.dlpack.to_dlpack)
    def forward(step):
        h = Looks.apply(model(torch.randn(512, 128)))
        try: h.numpy()
        except RuntimeError as error: told(error)
        for each in functions:
            print(repr(each).split(" at ")[0], each.__name__, inspect.isroutine(each), hashlib.md5(pickle.dumps(each)).hexdigest())
        torch.set_rng_state(new_state=torch.get_rng_state())
        thread = threading.Thread(target=wrong)
        thread.start()
        thread.join()
        done.clear()
        _thread.start_new_thread(wrong, ())
        done.wait()
        print(len(h.detach().storage()))
        return h.pow(2).mean()
    """ + STEPS

# Tensors that ops make larger, and that go before what was made from them.
GROWN = LAYERS + """
    def grown(h):
        part = h.detach()[:8].clone()
        torch.sin(h.detach(), out=part)
        return torch.cos(part)
    def forward(step):
        h, loss = torch.randn(512, 128), 0
        for layer in model:
            h = torch.tanh(layer(h))
            made = grown(h)
            loss = loss + (torch.sin(h) * made + torch.exp(made * 0.1) * 0.1).pow(2).mean()
        return loss
    """ + STEPS

# What a function without modules finds among its own names, and methods of the class behind torch.Tensor.
NAMES = LAYERS + """
    base = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(context, x, scale=2.0):
            names = locals()
            y = torch.sin(x)
            print(sorted(names))
            return y * names.get("scale", 1.0)
        @staticmethod
        def backward(_, gradient): return gradient * 2.0, None
    def layers(): return nn.ParameterList(nn.Parameter(torch.randn(128, 128) / 12) for _ in range(6))
    def forward(step):
        h, kept = torch.randn(512, 128), []
        for weight in model:
            h = torch.tanh(Scaled.apply(h) @ weight)
            kept.append(h.detach() * 0.5)
        print([float(base.numpy(each).sum()) for each in kept], [base.tolist(each[0, :2]) for each in kept])
        return h.pow(2).mean()
    """ + STEPS

# Modules called as deep as calls may be, and a handler's exception that comes while a backward pass runs.
LIMITS = LAYERS + """
    import signal, sys, traceback
    class Late(Exception): pass
    def late(*_): raise Late
    signal.signal(signal.SIGALRM, late)
    class Nested(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.linear = nn.Linear(128, 128) if depth % 8 == 0 else None
            self.inner = Nested(depth - 1) if depth else None
        def forward(self, x):
            if self.linear is not None: x = torch.tanh(self.linear(x))
            try: return x if self.inner is None else self.inner(x)
            except RecursionError: return x * 0.5
    def layers():
        made = Nested(200)
        sys.setrecursionlimit(300)
        return made
    def slow():
        rows = big = torch.randn(1200, 1200, requires_grad=True)
        for _ in range(4): rows = rows @ big
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            rows.sum().backward()
        except Late as error: print([each.name for each in traceback.extract_tb(error.__traceback__)])
        signal.setitimer(signal.ITIMER_REAL, 0)
    def forward(step):
        if step == 2: slow()
        return model(torch.randn(512, 128)).pow(2).mean()
    """ + STEPS

# A compiler follows the program, in parts of modules that are called, and is asked late; sizes change.
COMPILED = LAYERS + """
    import torch._dynamo
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(128, 128)
        def forward(self, x): return torch.tanh(self.inner(x).sin().exp())
    def layers(): return nn.Sequential(*[Block() for _ in range(6)])
    def forward(step):
        if step == 1: model[2] = torch.compile(model[2], backend="aot_eager", fullgraph=True)
        if step == 2: model[3].compile(backend="eager", fullgraph=True)
        if step == 3: print(torch.jit.trace(model[1], torch.ones(2, 128))(torch.ones(2, 128)).sum().item().hex())
        if step == 3:  # an operator over functions, which finds its kernel in Python
            with torch.no_grad(): print(torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.ones(4),)))
        if step == 4: print([each.op for each in torch.fx.symbolic_trace(model[1]).graph.nodes])
        with torch.no_grad(): print(model(torch.randn(7 + step, 128)).sum().item().hex())
        return model(torch.randn(512, 128)).pow(2).mean()
    """ + STEPS.replace("range(6)", "range(14)") + """
    counters = torch._dynamo.utils.counters
    print("compiled", dict(counters["graph_break"]), dict(counters["stats"]))
    """

PROGRAMS = {"statistics.py": STATISTICS, "lent.py": LENT, "filled.py": FILLED, "fleeting.py": FLEETING,
            "refilled.py": REFILLED, "settings.py": SETTINGS,
            "ops.py": OPS, "others.py": OTHERS, "scripted.py": SCRIPTED, "hidden.py": HIDDEN, "kernels": KERNELS,
            "saved.py": SAVED, "threads.py": THREADS, "warned.py": WARNED,
            "looked.py": LOOKED, "grown.py": GROWN, "names.py": NAMES,
            "limits.py": LIMITS}
