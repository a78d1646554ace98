# SPDX-License-Identifier: MIT
"""The programs of tests/nodes/run. Each rank writes its losses, and what becomes of its parameters, to argv[1] and its number."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import ranks_test  # noqa: E402

# Gradients are reduced with the last of four parts of a batch only.
ACCUMULATING = ranks_test.DEEP.replace("""    loss = model(torch.randn(512 * (1 + rank), 64)).pow(2).mean()
    loss.backward()
""", """    for part in range(4):
        with contextlib.nullcontext() if part == 3 else model.no_sync():
            loss = model(torch.randn(512 * (1 + rank), 64)).pow(2).mean() / 4
            loss.backward()
""").replace("import hashlib", "import contextlib, hashlib")
# A stage a rank, one forward pass, one backward pass: the first stage holds most micro-batches.
PIPELINE = """
import hashlib, sys, torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
layers = []
for _ in range(4):
    layers += [torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(256, 64), torch.nn.LayerNorm(64)]
model = torch.nn.Sequential(*layers)
stage = PipelineStage(model, rank, ranks, torch.device("cpu"))
schedule = Schedule1F1B(stage, 8, loss_fn=lambda output, target: (output - target).pow(2).mean())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
lines = []
for step in range(6):
    optimizer.zero_grad()
    losses = []
    if rank == 0:
        schedule.step(torch.randn(4096, 64))
    elif rank == ranks - 1:
        schedule.step(target=torch.randn(4096, 64), losses=losses)
    else:
        schedule.step()
    optimizer.step()
    lines.append([loss.item().hex() for loss in losses])
lines.append(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest())
open(sys.argv[1] + str(rank), "w").write(repr(lines))
dist.destroy_process_group()
"""
# What can go wrong, argv[2]: the last rank is killed within its fourth step, or is slow.
FAULTY = """
import os, signal, sys, time, torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank, last = dist.get_rank(), dist.get_rank() == dist.get_world_size() - 1
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with open(sys.argv[1] + str(rank), "w") as lines:
    for step in range(8):
        optimizer.zero_grad()
        loss = model(torch.randn(64, 64)).pow(2).mean()
        if last and sys.argv[2] == "killed" and step == 3:
            lines.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        if last and sys.argv[2] == "slow":
            time.sleep(0.5)
        loss.backward()
        optimizer.step()
        print(loss.item().hex(), file=lines, flush=True)
        time.sleep(0.1)
dist.destroy_process_group()
"""
# A transformer whose blocks are each in parts on all ranks.
FSDP2 = """
import hashlib, sys, torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional

class Block(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads, self.before, self.between = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow, self.dropout = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(0.1)

    def forward(self, hidden):
        batch, length, width = hidden.shape
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                             for part in self.project(self.before(hidden)).split(width, dim=2))
        weights = functional.dropout((query @ key.transpose(2, 3) * (width // self.heads) ** -0.5).softmax(-1), 0.1)
        hidden = hidden + self.dropout(self.merge((weights @ value).transpose(1, 2).reshape(batch, length, width)))
        return hidden + self.dropout(self.narrow(functional.gelu(self.wide(self.between(hidden)))))

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(256, 128), *(Block(128) for _ in range(4)), nn.LayerNorm(128), nn.Linear(128, 256))
for block in model[1:5]:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
torch.manual_seed(rank)
lines = []
for step in range(6):
    optimizer.zero_grad()
    tokens = torch.randint(0, 256, (8, 128))
    loss = functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    lines.append(loss.item().hex())
lines.append(hashlib.sha256(b"".join(p.to_local().detach().numpy().tobytes() for p in model.parameters())).hexdigest())
open(sys.argv[1] + str(rank), "w").write(repr(lines))
dist.destroy_process_group()
"""
PROGRAMS = {"DDP": ranks_test.DEEP, "accumulating": ACCUMULATING, "FSDP2": FSDP2, "pipeline": PIPELINE}
