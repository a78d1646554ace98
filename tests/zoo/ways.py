# SPDX-License-Identifier: MIT
"""Ways of training: what people do around the loop, with torch alone."""
import copy
import io
import threading

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from loop import digest, program, tell, train
from networks import classes, images, small_convolutions


class Residual(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.norm, self.body = nn.LayerNorm(width), nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.body(self.norm(x))


def deep(layers=6, width=64):
    return nn.Sequential(*(Residual(width) for _ in range(layers)), nn.Linear(width, 10))


def guess(model, count=64, width=64):
    return functional.cross_entropy(model(torch.randn(count, width)), classes(count))


@program("accumulation")
def accumulation(steps):
    model = deep()

    def loss():
        for _ in range(3):
            (guess(model) / 4).backward()
        return guess(model) / 4
    train(steps, model, loss)


@program("autocast-bfloat16")
def autocast(steps):
    model = small_convolutions()

    def loss():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return functional.cross_entropy(model(images()), classes())
    train(steps, model, loss)


def checkpointed(steps, reentrant):
    model = deep()

    def loss():
        x = torch.randn(64, 64, requires_grad=reentrant)
        for block in model[:-1]:
            x = checkpoint(block, x, use_reentrant=reentrant)
        return functional.cross_entropy(model[-1](x), classes(64))
    train(steps, model, loss)


@program("checkpoint-blocks")
def checkpoint_blocks(steps):
    checkpointed(steps, reentrant=False)


@program("checkpoint-reentrant")
def checkpoint_reentrant(steps):
    checkpointed(steps, reentrant=True)


@program("custom-function")
def custom_function(steps):
    class Swish(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            return x * x.sigmoid()

        @staticmethod
        def backward(context, slope):
            x, = context.saved_tensors
            gate = x.sigmoid()
            return slope * (gate + x * gate * (1 - gate))
    one, two = nn.Linear(64, 256), nn.Linear(256, 10)
    train(steps, nn.ModuleList([one, two]), lambda: guess(lambda x: two(Swish.apply(one(x)))))


@program("lbfgs")
def lbfgs(steps):
    model, data, truth = deep(2), torch.randn(64, 64), classes(64)
    model.eval()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(data), truth)
        loss.backward()
        return loss
    for step in range(steps):
        tell(step, optimizer.step(closure))
    digest(model)


@program("moving-average")
def moving_average(steps):
    model = deep()
    kept = torch.optim.swa_utils.AveragedModel(model)
    train(steps, model, lambda: guess(model), after=lambda: kept.update_parameters(model))
    digest(kept)


@program("evaluation-between")
def evaluation(steps):
    model, optimizer = small_convolutions(), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for step in range(steps):
        model.train()
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images()), classes())
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(images(16)).argmax(1) == classes(16)).sum().item()
        tell(step, loss)
        print("eval", step, right, flush=True)
    digest(model)


@program("data-loader-workers")
def data_loader(steps):
    data = torch.utils.data.TensorDataset(torch.randn(20 * steps, 64), classes(20 * steps))
    loader = torch.utils.data.DataLoader(data, 16, shuffle=True, num_workers=2)
    model = deep()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, (x, y) in enumerate(loader):  # the last batch is smaller
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        tell(step, loss)
    digest(model)


@program("save-and-load")
def save_and_load(steps):
    model = deep()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(steps):
        optimizer.zero_grad()
        loss = guess(model)
        loss.backward()
        optimizer.step()
        kept = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, kept)
        if step == steps // 2:
            kept.seek(0)
            state = torch.load(kept)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
        tell(step, loss)
        print("given", len(kept.getvalue()), flush=True)
    digest(model)


@program("hooks")
def hooks(steps):
    model, seen = deep(), []
    for block in model[:-1]:
        block.register_forward_hook(lambda module, given, out: out * 1.0)
    model[0].body[0].weight.register_hook(lambda slope: slope.clamp(-1, 1))

    def loss():
        out = functional.cross_entropy(model(torch.randn(64, 64)), classes(64))
        out.retain_grad()
        return out
    train(steps, model, loss, after=lambda: seen.append(model[0].body[0].weight.grad.norm().item()))
    print("seen", *(value.hex() for value in seen))


@program("several-losses")
def several_losses(steps):
    model = deep()
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
    for step in range(steps):
        optimizer.zero_grad()
        hidden = model[:-1](torch.randn(64, 64))
        first, second = functional.cross_entropy(model[-1](hidden), classes(64)), hidden.pow(2).mean()
        first.backward(retain_graph=True)
        second.backward()
        optimizer.step()
        tell(step, first + second)
    digest(model)


@program("maml")
def maml(steps):
    weights = [nn.Parameter(torch.randn(32, 8) / 3), nn.Parameter(torch.zeros(32)), nn.Parameter(torch.randn(1, 32) / 6), nn.Parameter(torch.zeros(1))]
    optimizer = torch.optim.Adam(weights, lr=1e-3)
    guess_with = lambda w, x: functional.linear(functional.linear(x, w[0], w[1]).tanh(), w[2], w[3])
    for step in range(steps):
        loss = 0.0
        for _ in range(3):
            x, y = torch.randn(20, 8), torch.randn(20, 1)
            slopes = torch.autograd.grad((guess_with(weights, x) - y).pow(2).mean(), weights, create_graph=True)
            loss = loss + (guess_with([w - 0.05 * s for w, s in zip(weights, slopes)], x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tell(step, loss)


@program("updates-by-hand")
def updates_by_hand(steps):
    model = deep(3)
    for step in range(steps):
        loss = guess(model)
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= 0.01 * weight.grad
                weight.grad = None
        tell(step, loss)
    digest(model)


@program("optimizer-in-backward")
def optimizer_in_backward(steps):
    model = deep()
    for weight in model.parameters():
        optimizer = torch.optim.SGD([weight], lr=0.01)

        def update(slope, weight=weight, optimizer=optimizer):
            with torch.no_grad():
                weight.grad = slope
                optimizer.step()
                weight.grad = None
            return torch.zeros_like(slope)
        weight.register_hook(update)
    for step in range(steps):
        loss = guess(model)
        loss.backward()
        tell(step, loss)
    digest(model)


@program("training-thread")
def training_thread(steps):
    model = deep()
    worker = threading.Thread(target=train, args=(steps, model, lambda: guess(model)))
    worker.start()
    worker.join()


@program("tied-weights")
def tied_weights(steps):
    embed, body, out = nn.Embedding(300, 64), deep(3)[:-1], nn.Linear(64, 300, bias=False)
    out.weight = embed.weight
    model = nn.ModuleList([embed, body, out])

    def loss():
        tokens = torch.randint(0, 300, (8, 17))
        return functional.cross_entropy(out(body(embed(tokens[:, :-1]))).flatten(0, 1), tokens[:, 1:].flatten())
    train(steps, model, loss)


@program("channels-last")
def channels_last(steps):
    model = small_convolutions().to(memory_format=torch.channels_last)
    train(steps, model, lambda: functional.cross_entropy(model(images().to(memory_format=torch.channels_last)), classes()))


@program("double-precision")
def double_precision(steps):
    model = deep(3).double()
    train(steps, model, lambda: functional.cross_entropy(model(torch.randn(64, 64, dtype=torch.float64)), classes(64)))


@program("exception-caught")
def exception_caught(steps):
    model = deep()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    for step in range(steps):
        optimizer.zero_grad()
        try:
            loss = functional.cross_entropy(model(torch.randn(64, 63 if step == 4 else 64)), classes(64))
        except RuntimeError:
            print("seen a batch of another shape", flush=True)
            continue
        loss.backward()
        optimizer.step()
        tell(step, loss)
    digest(model)


@program("varying-lengths")
def varying_lengths(steps):
    model = nn.ModuleList([nn.Embedding(100, 64), nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), nn.Linear(64, 100)])

    def loss():
        tokens = torch.randint(0, 100, (4, 8 * int(torch.randint(1, 6, ()))))
        return functional.cross_entropy(model[2](model[1](model[0](tokens))).flatten(0, 1), tokens.flatten())
    train(steps, model, loss)


@program("numpy-between")
def numpy_between(steps):
    model = deep()

    def loss():
        hidden = model[:3](torch.randn(64, 64))
        scale = float(hidden.detach().numpy().std())
        return functional.cross_entropy(model[3:](hidden / scale), classes(64))
    train(steps, model, loss)


@program("hyper-parameters")
def hyper_parameters(steps):
    first = deep(2)
    for rate in (1e-2, 1e-3):
        model = copy.deepcopy(first)
        train(steps, model, lambda: guess(model), torch.optim.SGD(model.parameters(), lr=rate))


@program("scripted")
def scripted(steps):
    model = torch.jit.script(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)))
    train(steps, model, lambda: guess(model))


@program("saved-on-disk")
def saved_on_disk(steps):
    model = deep()

    def loss():
        with torch.autograd.graph.saved_tensors_hooks(lambda kept: kept.clone(), lambda kept: kept):
            return guess(model)
    train(steps, model, loss)


@program("functional-gradients", "torch.func")
def functional_gradients(steps):
    from torch.func import functional_call, grad, vmap
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 4))
    names = dict(model.named_parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def one(weights, x, y):
        return functional.cross_entropy(functional_call(model, weights, (x[None],)), y[None])
    for step in range(steps):
        weights = {name: weight.detach() for name, weight in names.items()}
        x, y = torch.randn(32, 16), classes(32, 4)
        slopes = vmap(grad(one), in_dims=(None, 0, 0))(weights, x, y)
        for name, weight in names.items():
            weight.grad = (slopes[name] / slopes[name].flatten(1).norm(dim=1).clamp(min=1).view(-1, *[1] * weight.dim())).mean(0)
        optimizer.step()
        tell(step, functional.cross_entropy(model(x), y))
    digest(model)


@program("compiled", "torch._dynamo")
def compiled(steps):
    model = deep(2)
    run = torch.compile(model, backend="aot_eager")
    train(steps, model, lambda: guess(run))


@program("profiler-around")
def profiler_around(steps):
    from torch.profiler import profile
    model = deep(2)
    with profile() as seen:
        train(steps, model, lambda: guess(model))
    print("seen", any("addmm" in event.key for event in seen.key_averages()))


@program("flop-counter", "torch.utils.flop_counter")
def flop_counter(steps):
    from torch.utils.flop_counter import FlopCounterMode
    model = deep(2)
    with FlopCounterMode(display=False) as counter:
        train(steps, model, lambda: guess(model))
    print("seen", counter.get_total_flops())
