# SPDX-License-Identifier: MIT
"""Traces of torch.profiler from a GPU that never ran: in today's form, of rank 1 of 2, and in the form of 2021."""
import contextlib
import gzip
import json

LAYERS, STEPS = 10, 3
BYTES = 8 << 20  # of a layer's result
MAIN, AUTOGRAD, COMPUTE, COLLECTIVE = 1001, 1002, 7, 14
CATEGORIES = {  # today's, those of 2021
    "op": ("cpu_op", "Operator"), "annotation": ("user_annotation", "Operator"), "runtime": ("cuda_runtime", "Runtime"),
    "kernel": ("kernel", "Kernel"), "copy": ("gpu_memcpy", "Memcpy"), "fill": ("gpu_memset", "Memset")}


class Trace:
    def __init__(self, today):
        self.today, self.device = today, 1 if today else 0
        self.events, self.now, self.thread = [], 1_700_000_000_000_000, MAIN
        self.level, self.top, self.ids, self.sequence = 64 << 20, 0x7f0000000000, 0, 0
        self.free_at = {COMPUTE: 0, COLLECTIVE: 0}
        self.where = []

    def event(self, kind, name, **fields):
        event = {"ph": "X", "cat": CATEGORIES[kind][not self.today], "name": name, "pid": 1000, "tid": self.thread,
                 "ts": self.now, "dur": 0, "args": {}, **fields}
        self.events.append(event)
        return event

    @contextlib.contextmanager
    def span(self, kind, name, sequence=None, forward_thread=0):
        self.ids += 1
        arguments = {"External id": self.ids}
        if sequence is not None:
            arguments.update({"Sequence number": sequence, "Fwd thread id": forward_thread})
        if self.where and self.thread == MAIN:
            arguments["Module Hierarchy" if self.today else "Call stack"] = self.place()
        event = self.event(kind, name, args=arguments)
        self.now += 2
        yield
        self.now += 2
        event["dur"] = self.now - event["ts"]
        self.now += 1

    def place(self):
        if self.today:
            return "TOP(Net)::forward" + "".join(f".{name}({kind})::forward" for name, kind in self.where)
        stack = ["/home/someone/train.py(31): <module>", "/home/someone/net.py(20): forward"]
        for name, _ in self.where:
            stack += ["/usr/lib/torch/nn/modules/module.py(1051): _call_impl",
                      f"/home/someone/layers.py({40 + len(name)}): {name}"]
        return ";".join(reversed(stack))

    def memory(self, size, address, host=False):
        arguments = {"Device Type": 0 if host else 1, "Device Id": -1 if host else self.device, "Bytes": size}
        if not host:
            self.level += size
        if self.today:
            arguments.update({"Addr": address, "Total Allocated": self.level, "Total Reserved": 1 << 30})
        event = {"ph": "i", "s": "t", "name": "[memory]", "pid": 1000, "tid": self.thread, "ts": self.now, "args": arguments}
        self.events.append({**event, "cat": "cpu_instant_event"} if self.today else event)
        self.now += 1

    def alloc(self, size):
        self.top += size
        self.memory(size, self.top)
        return self.top, size

    def free(self, block):
        self.memory(-block[1], block[0])

    def launch(self, kind, name, duration, stream=COMPUTE, **more):
        self.ids += 1
        call = {"kernel": "cudaLaunchKernel", "copy": "cudaMemcpyAsync", "fill": "cudaMemsetAsync"}[kind]
        self.event("runtime", call, dur=1, args={"cbid": 211, "correlation": self.ids})
        begin = max(self.now + 4, self.free_at[stream])
        self.free_at[stream] = begin + duration
        self.event(kind, name, ts=begin, dur=duration, pid=self.device, tid=stream if self.today else f"stream {stream}",
                   args={"device": self.device, "context": 1, "stream": stream, "correlation": self.ids, **more})
        self.now += 2

    # --- a training

    def forward(self):
        saved = []
        for number in range(LAYERS):
            self.where = [("stage" + str(number // 5), "Sequential"), (str(number), "Conv2d")]
            self.sequence += 1
            with self.span("op", "aten::conv2d", self.sequence), self.span("op", "aten::convolution", self.sequence), \
                    self.span("op", "aten::cudnn_convolution", self.sequence):
                saved.append((self.sequence, self.alloc(BYTES)))
                workspace = self.alloc(BYTES // 2)
                self.launch("kernel", "implicit_convolve_sgemm", 90)
                self.free(workspace)
            with self.span("op", "aten::relu_"):
                self.launch("kernel", "vectorized_elementwise_kernel", 20)
        self.where = []
        return saved

    def backward(self, saved):
        self.thread, gradients = AUTOGRAD, []
        for sequence, block in reversed(saved):
            name = "ConvolutionBackward0" if self.today else "CudnnConvolutionBackward"
            with contextlib.ExitStack() as spans:
                if self.today:
                    spans.enter_context(self.span("op", "autograd::engine::evaluate_function: " + name, sequence, 1))
                spans.enter_context(self.span("op", name, sequence, 1))
                spans.enter_context(self.span("op", "aten::convolution_backward"))
                gradients.append(self.alloc(1 << 20))
                wanted = self.alloc(BYTES)
                self.launch("fill", "Memset (Device)", 1, bytes=1 << 20)
                self.launch("kernel", "dgrad_engine", 95)
                self.launch("kernel", "wgrad_engine", 95)
                self.free(block)
                self.free(wanted)
            if self.today:
                with self.span("annotation", "nccl:all_reduce"), self.span("op", "c10d::allreduce_"):
                    self.launch("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float", 60, COLLECTIVE)
        self.thread = MAIN
        return gradients

    def step(self, number, gradients):
        with self.span("annotation", f"ProfilerStep#{number}"):
            with self.span("annotation", "Optimizer.zero_grad#SGD.zero_grad"):
                for gradient in gradients:
                    self.free(gradient)
            with self.span("op", "aten::to"), self.span("op", "aten::copy_"):
                self.memory(4096, 4096, host=True)
                batch = self.alloc(2 << 20)
                self.launch("copy", "Memcpy HtoD (Pageable -> Device)", 150, bytes=2 << 20)
                self.memory(-4096, 4096, host=True)
            gradients = self.backward(self.forward())
            with self.span("annotation", "Optimizer.step#SGD.step"):
                for _ in gradients:
                    with self.span("op", "aten::add_"):
                        self.launch("kernel", "multi_tensor_apply_kernel", 5)
            self.free(batch)
        self.now += 50
        return gradients


def trace(today):
    made, gradients = Trace(today), []
    for number in range(STEPS):
        gradients = made.step(number, gradients)
    for gradient in gradients:
        made.free(gradient)
    document = {"schemaVersion": 1, "deviceProperties": [{"id": made.device, "name": "Made-up GPU", "totalGlobalMem": 16 << 30}]}
    if today:
        document["distributedInfo"] = {"backend": "nccl", "rank": 1, "world_size": 2}
    document["traceEvents"] = made.events
    return document


def packed(document):
    return gzip.compress(json.dumps(document).encode(), 9, mtime=0)


def layers(events):
    """The ways to every place that ops name, one for each level."""
    ways = set()
    for event in events:
        arguments = event.get("args", {})
        if "Module Hierarchy" in arguments:
            way = tuple(part.split("(")[0] for part in arguments["Module Hierarchy"].split(".")[1:])
        else:
            stack = arguments.get("Call stack", "").split(";")
            way = tuple(part for part in reversed(stack) if part and "_call_impl" not in part)
        ways |= {way[:length + 1] for length in range(len(way))}
    return len(ways)


def figures(document):
    """What a reader has to find in it, counted from the events themselves."""
    events = document["traceEvents"]

    def of(kind):
        return [event for event in events if event.get("cat") in CATEGORIES[kind]]

    memory = [event["args"] for event in events if event["name"] == "[memory]"]
    last = max(event["ts"] for event in events if event["name"] == "[memory]" and event["args"]["Device Type"] == 1)
    ops = [event for event in of("op") if "#" not in event["name"] and event["cat"] != "user_annotation"]
    device = [event for event in memory if event["Device Type"] == 1]
    level = most = least = 0
    for event in device:
        level += event["Bytes"]
        most, least = max(most, level), min(least, level)
    steps = [(event["ts"], event["ts"] + event["dur"]) for event in events if event["name"].startswith("Optimizer.")]
    starts = {event["ts"] for event in ops}
    backward = sum(event["tid"] == AUTOGRAD for event in ops)
    optimizer = sum(begin <= event["ts"] < end for event in ops for begin, end in steps)
    return {"ops": len(ops), "memory_events": len(memory), "kernels": len(of("kernel")), "copies": len(of("copy") + of("fill")),
            "layers": layers(events), "forward": len(ops) - backward - optimizer, "backward": backward, "optimizer": optimizer,
            "bytes": sum(event["Bytes"] for event in memory), "moments": len(device), "peak": most - least, "end": level - least,
            "highest_total": max(event.get("Total Allocated", 0) for event in memory), "first_op_ns": 1000 * min(starts),
            "last_memory_ns": 1000 * last,
            "allocations": sum(event["Bytes"] > 0 for event in memory), "frees": sum(event["Bytes"] < 0 for event in memory),
            "compute_stream": sum(event["args"]["stream"] == COMPUTE for event in of("kernel") + of("copy") + of("fill")),
            "collective_stream": sum(event["args"]["stream"] == COLLECTIVE for event in of("kernel"))}
