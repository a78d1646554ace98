# SPDX-License-Identifier: MIT
"""Networks written out with torch alone, as people write them, each with the training that goes with its kind."""
import torch
from torch import nn
from torch.nn import functional

from loop import digest, program, tell, train


def images(count=8, size=32, channels=3):
    return torch.randn(count, channels, size, size)


def classes(count=8, of=10):
    return torch.randint(0, of, (count,))


def small_convolutions(channels=3, width=16, of=10):
    return nn.Sequential(nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
                         nn.Conv2d(width, width * 2, 3, 2, padding=1), nn.BatchNorm2d(width * 2), nn.ReLU(),
                         nn.Conv2d(width * 2, width * 4, 3, 2, padding=1), nn.BatchNorm2d(width * 4), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(width * 4, of))


@program("autoencoder")
def autoencoder(steps):
    model = nn.Sequential(nn.Linear(784, 256), nn.Tanh(), nn.Linear(256, 32), nn.Tanh(), nn.Linear(32, 256), nn.Tanh(),
                          nn.Linear(256, 784), nn.Sigmoid())

    def loss():
        x = torch.rand(64, 784)
        return functional.binary_cross_entropy(model(x), x)
    train(steps, model, loss)


@program("vae")
def vae(steps):
    class Vae(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.mean, self.spread = nn.Linear(784, 200), nn.Linear(200, 16), nn.Linear(200, 16)
            self.decode = nn.Sequential(nn.Linear(16, 200), nn.ReLU(), nn.Linear(200, 784))

        def forward(self, x):
            hidden = functional.relu(self.encode(x))
            mean, spread = self.mean(hidden), self.spread(hidden)
            z = mean + torch.randn_like(mean) * torch.exp(0.5 * spread)
            return self.decode(z), mean, spread
    model = Vae()

    def loss():
        x = torch.rand(64, 784)
        out, mean, spread = model(x)
        return functional.binary_cross_entropy_with_logits(out, x) - 0.5 * torch.mean(1 + spread - mean.pow(2) - spread.exp())
    train(steps, model, loss, torch.optim.Adam(model.parameters(), lr=1e-3))


@program("gan")
def gan(steps):
    make = nn.Sequential(nn.ConvTranspose2d(32, 32, 4), nn.BatchNorm2d(32), nn.ReLU(), nn.ConvTranspose2d(32, 16, 4, 2, 1),
                         nn.BatchNorm2d(16), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh())
    judge = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(16, 32, 4, 2, 1),
                          nn.LeakyReLU(0.2, inplace=True), nn.Flatten(), nn.Linear(512, 1))
    optimizers = [torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999)) for net in (judge, make)]
    ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
    for step in range(steps):
        made = make(torch.randn(16, 32, 1, 1))
        optimizers[0].zero_grad()
        loss = functional.binary_cross_entropy_with_logits(judge(images(16, 16)), ones) + \
            functional.binary_cross_entropy_with_logits(judge(made.detach()), zeros)
        loss.backward()
        optimizers[0].step()
        optimizers[1].zero_grad()
        fooled = functional.binary_cross_entropy_with_logits(judge(made), ones)
        fooled.backward()
        optimizers[1].step()
        tell(step, loss + fooled)
    digest(make, judge)


@program("gradient-penalty")
def gradient_penalty(steps):
    judge = nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 1))

    def loss():
        real, fake, mix = torch.randn(32, 64), torch.randn(32, 64) + 1, torch.rand(32, 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        slope, = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
        return judge(fake).mean() - judge(real).mean() + 10 * (slope.norm(2, dim=1) - 1).pow(2).mean()
    train(steps, judge, loss, torch.optim.RMSprop(judge.parameters(), lr=1e-4))


@program("seq2seq-attention")
def seq2seq(steps):
    class Seq2Seq(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.read = nn.Embedding(100, 48), nn.GRU(48, 64, batch_first=True, bidirectional=True)
            self.cell, self.score, self.out = nn.GRUCell(48 + 128, 128), nn.Linear(256, 1), nn.Linear(128, 100)

        def forward(self, source, target):
            seen, _ = self.read(self.embed(source))
            state, logits = seen[:, -1], []
            for t in range(target.shape[1]):
                weights = self.score(torch.cat([seen, state[:, None].expand_as(seen)], -1)).softmax(1)
                state = self.cell(torch.cat([self.embed(target[:, t]), (weights * seen).sum(1)], -1), state)
                logits.append(self.out(state))
            return torch.stack(logits, 1)
    model = Seq2Seq()

    def loss():
        source, target = torch.randint(0, 100, (16, 20)), torch.randint(0, 100, (16, 12))
        return functional.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
    train(steps, model, loss, after=lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0))


@program("packed-lstm")
def packed_lstm(steps):
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.lstm, self.out = nn.Embedding(100, 32), nn.LSTM(32, 48, 2, batch_first=True, dropout=0.1), nn.Linear(48, 5)

        def forward(self, tokens, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
            return self.out(nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0])
    model = Tagger()

    def loss():
        lengths = torch.randint(4, 20, (16,))
        out = model(torch.randint(0, 100, (16, 20)), lengths)
        return functional.cross_entropy(out.flatten(0, 1), torch.randint(0, 5, (out.shape[0] * out.shape[1],)))
    train(steps, model, loss)


@program("speech-ctc")
def speech_ctc(steps):
    model = nn.Sequential(nn.Conv1d(40, 64, 5, 2, 2), nn.GELU(), nn.Conv1d(64, 64, 5, 1, 2), nn.GELU(), nn.Conv1d(64, 30, 1))

    def loss():
        out = model(torch.randn(8, 40, 120)).permute(2, 0, 1).log_softmax(-1)
        return functional.ctc_loss(out, torch.randint(1, 30, (8, 10)), torch.full((8,), out.shape[0]), torch.full((8,), 10))
    train(steps, model, loss)


@program("spectrogram-fft")
def spectrogram(steps):
    model = small_convolutions(1)

    def loss():
        heard = torch.stft(torch.randn(8, 4096), 256, 64, window=torch.hann_window(256), return_complex=True)
        return functional.cross_entropy(model(heard.abs().log1p()[:, None]), classes())
    train(steps, model, loss)


@program("mixture-of-experts")
def mixture_of_experts(steps):
    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(64, 4)
            self.experts = nn.ModuleList(nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64)) for _ in range(4))

        def forward(self, x):
            weight, chosen = self.gate(x).softmax(-1).topk(2)
            out = torch.zeros_like(x)
            for e, expert in enumerate(self.experts):
                row, place = (chosen == e).nonzero(as_tuple=True)
                if len(row):
                    out = out.index_add(0, row, expert(x[row]) * weight[row, place, None])
            return out
    model = Mixture()
    train(steps, model, lambda: (model(torch.randn(128, 64)) - torch.randn(128, 64)).pow(2).mean())


@program("graph-network")
def graph_network(steps):
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.message, self.update = nn.Linear(64, 32), nn.GRUCell(32, 32)

        def forward(self, nodes, edges):
            told = self.message(torch.cat([nodes[edges[0]], nodes[edges[1]]], 1)).relu()
            return self.update(torch.zeros_like(nodes).index_add_(0, edges[1], told), nodes)
    model = nn.ModuleDict({"layers": nn.ModuleList(Layer() for _ in range(3)), "out": nn.Linear(32, 3)})

    def loss():
        nodes, edges = torch.randn(200, 32), torch.randint(0, 200, (2, 800))
        for layer in model["layers"]:
            nodes = layer(nodes, edges)
        return functional.cross_entropy(model["out"](nodes), torch.randint(0, 3, (200,)))
    train(steps, model, loss)


@program("diffusion-unet")
def diffusion(steps):
    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Sequential(nn.Linear(1, 32), nn.SiLU(), nn.Linear(32, 32))
            self.into, self.down = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, 2, 1)
            self.middle = nn.Sequential(nn.GroupNorm(8, 64), nn.SiLU(), nn.Conv2d(64, 64, 3, padding=1))
            self.up, self.out = nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.Conv2d(64, 3, 3, padding=1)

        def forward(self, x, t):
            first = self.into(x) + self.time(t)[:, :, None, None]
            deep = self.down(first)
            deep = deep + self.middle(deep)
            return self.out(torch.cat([first, functional.silu(self.up(deep))], 1))
    model = Denoiser()

    def loss():
        clean, noise, t = images(), torch.randn(8, 3, 32, 32), torch.rand(8, 1)
        keep = (1 - t)[:, :, None, None]
        return (model(clean * keep.sqrt() + noise * (1 - keep).sqrt(), t) - noise).pow(2).mean()
    train(steps, model, loss)


@program("dqn")
def dqn(steps):
    import copy
    import random
    acting = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4))
    target, optimizer = copy.deepcopy(acting), torch.optim.Adam(acting.parameters(), lr=1e-3)
    memory, draw, state = [], random.Random(3), torch.randn(8)
    for step in range(steps):
        for _ in range(20):
            with torch.no_grad():
                action = acting(state).argmax().item() if draw.random() > 0.2 else draw.randrange(4)
            after = torch.randn(8)
            memory.append((state, action, draw.random(), after))
            state = after
        batch = [draw.choice(memory) for _ in range(64)]
        before, after = torch.stack([b[0] for b in batch]), torch.stack([b[3] for b in batch])
        with torch.no_grad():
            goal = torch.tensor([b[2] for b in batch]) + 0.99 * target(after).max(1)[0]
        loss = functional.smooth_l1_loss(acting(before).gather(1, torch.tensor([[b[1]] for b in batch]))[:, 0], goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mine, theirs in zip(target.parameters(), acting.parameters()):
                mine.lerp_(theirs, 0.01)
        tell(step, loss)
    digest(acting, target)


@program("actor-critic")
def actor_critic(steps):
    body, policy, value = nn.Linear(8, 64), nn.Linear(64, 4), nn.Linear(64, 1)
    optimizer = torch.optim.Adam([*body.parameters(), *policy.parameters(), *value.parameters()], lr=3e-4)
    for step in range(steps):
        hidden = torch.tanh(body(torch.randn(64, 8)))
        chosen = torch.distributions.Categorical(logits=policy(hidden))
        action, reward = chosen.sample(), torch.randn(64)
        gain = reward - value(hidden)[:, 0]
        loss = -(chosen.log_prob(action) * gain.detach()).mean() + gain.pow(2).mean() - 0.01 * chosen.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tell(step, loss)
    digest(body, policy, value)


@program("contrastive")
def contrastive(steps):
    model = nn.Sequential(small_convolutions(of=64), nn.ReLU(), nn.Linear(64, 32))

    def loss():
        seen = functional.normalize(model(images(32)), dim=1)
        alike = (seen @ seen.t() / 0.5).masked_fill(torch.eye(32, dtype=torch.bool), -1e9)
        return functional.cross_entropy(alike, (torch.arange(32) + 16) % 32)
    train(steps, model, loss, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4))


@program("physics-informed")
def physics_informed(steps):
    model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def loss():
        at = torch.rand(256, 2, requires_grad=True)
        slope, = torch.autograd.grad(model(at).sum(), at, create_graph=True)
        bend, = torch.autograd.grad(slope[:, 0].sum(), at, create_graph=True)
        return (slope[:, 1] - 0.1 * bend[:, 0]).pow(2).mean() + (model(at * torch.tensor([0.0, 1.0]))).pow(2).mean()
    train(steps, model, loss)


@program("neural-ode")
def neural_ode(steps):
    field = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 16))

    def loss():
        x, dt = torch.randn(64, 16), 0.1
        for _ in range(12):
            one = field(x)
            two = field(x + dt / 2 * one)
            three = field(x + dt / 2 * two)
            x = x + dt / 6 * (one + 2 * two + 2 * three + field(x + dt * three))
        return x.pow(2).mean()
    train(steps, field, loss)


@program("normalizing-flow")
def normalizing_flow(steps):
    halves = nn.ModuleList(nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16)) for _ in range(6))

    def loss():
        x, volume = torch.randn(128, 16), 0.0
        for half in halves:
            a, b = x.chunk(2, 1)
            scale, shift = half(a).chunk(2, 1)
            scale = torch.tanh(scale)
            x, volume = torch.cat([b * scale.exp() + shift, a], 1), volume + scale.sum(1)
        return (0.5 * x.pow(2).sum(1) - volume).mean()
    train(steps, halves, loss)


@program("word2vec-sparse")
def word2vec(steps):
    words, around = nn.Embedding(2000, 64, sparse=True), nn.Embedding(2000, 64, sparse=True)
    both = nn.ModuleList([words, around])

    def loss():
        center, near, far = torch.randint(0, 2000, (64,)), torch.randint(0, 2000, (64,)), torch.randint(0, 2000, (64, 5))
        good = (words(center) * around(near)).sum(1)
        bad = torch.bmm(around(far), words(center)[:, :, None])[:, :, 0]
        return -(functional.logsigmoid(good) + functional.logsigmoid(-bad).sum(1)).mean()
    train(steps, both, loss, torch.optim.SparseAdam(list(both.parameters()), lr=1e-3))


@program("translation-transformer")
def translation(steps):
    embed, out = nn.Embedding(200, 64), nn.Linear(64, 200)
    body = nn.Transformer(64, 4, 2, 2, 128, 0.1, batch_first=True)
    model = nn.ModuleList([embed, body, out])
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, betas=(0.9, 0.98))
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))

    def loss():
        source, target = torch.randint(0, 200, (8, 24)), torch.randint(0, 200, (8, 20))
        ahead = torch.triu(torch.full((19, 19), float("-inf")), 1)
        seen = body(embed(source), embed(target[:, :-1]), tgt_mask=ahead)
        return functional.cross_entropy(out(seen).flatten(0, 1), target[:, 1:].flatten(), label_smoothing=0.1)
    train(steps, model, loss, optimizer, after=warm.step)


@program("temporal-convolutions")
def temporal_convolutions(steps):
    layers = []
    for level in range(5):
        layers += [nn.ConstantPad1d((2 ** level * 2, 0), 0), nn.utils.weight_norm(nn.Conv1d(32, 32, 3, dilation=2 ** level)), nn.ReLU()]
    model = nn.Sequential(nn.Conv1d(1, 32, 1), *layers, nn.Conv1d(32, 1, 1))
    train(steps, model, lambda: (model(torch.randn(16, 1, 200)) - torch.randn(16, 1, 200)).abs().mean())


@program("style-transfer")
def style_transfer(steps):
    features = small_convolutions()[:9].eval().requires_grad_(False)
    picture, wanted = images(1, 48).requires_grad_(), features(images(1, 48))
    optimizer = torch.optim.Adam([picture], lr=0.02)
    gram = lambda x: x.flatten(2) @ x.flatten(2).transpose(1, 2) / x.numel()
    for step in range(steps):
        optimizer.zero_grad()
        seen = features(picture)
        loss = (gram(seen) - gram(wanted)).pow(2).sum() + (seen - wanted).pow(2).mean() + picture.diff(dim=3).abs().mean()
        loss.backward()
        optimizer.step()
        tell(step, loss)


@program("segmentation-unet")
def segmentation(steps):
    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True))
            self.one, self.two, self.three = block(3, 16), block(16, 32), block(32, 64)
            self.up, self.last, self.out = block(96, 32), block(48, 16), nn.Conv2d(16, 4, 1)

        def forward(self, x):
            one = self.one(x)
            two = self.two(functional.max_pool2d(one, 2))
            three = self.three(functional.max_pool2d(two, 2))
            up = self.up(torch.cat([functional.interpolate(three, scale_factor=2, mode="bilinear", align_corners=False), two], 1))
            return self.out(self.last(torch.cat([functional.interpolate(up, scale_factor=2.0), one], 1)))
    model = Unet()

    def loss():
        chance, truth = model(images(4, 48)).softmax(1), functional.one_hot(torch.randint(0, 4, (4, 48, 48)), 4).permute(0, 3, 1, 2)
        return 1 - 2 * (chance * truth).sum() / (chance.sum() + truth.sum())
    train(steps, model, loss)


@program("detection-anchors")
def detection(steps):
    body, boxes, scores = small_convolutions()[:9], nn.Conv2d(64, 8, 1), nn.Conv2d(64, 2, 1)
    model = nn.ModuleList([body, boxes, scores])

    def loss():
        seen = body(images(4, 64))
        hit = torch.rand(4, 2, 16, 16) > 0.9
        offsets = boxes(seen).view(4, 2, 4, 16, 16).permute(0, 1, 3, 4, 2)[hit]
        return functional.binary_cross_entropy_with_logits(scores(seen), hit.float()) + offsets.abs().mean()
    train(steps, model, loss)


@program("super-resolution")
def super_resolution(steps):
    model = nn.Sequential(nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
                          nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3))
    train(steps, model, lambda: functional.l1_loss(model(images(4, 24, 1)), images(4, 72, 1)))


@program("tree-lstm")
def tree_lstm(steps):
    cell, out = nn.Linear(64, 160), nn.Linear(32, 3)
    model = nn.ModuleList([cell, out])

    def join(left, right):
        i, f, g, o, u = cell(torch.cat([left[0], right[0]], 1)).chunk(5, 1)
        state = i.sigmoid() * u.tanh() + f.sigmoid() * left[1] + g.sigmoid() * right[1]
        return o.sigmoid() * state.tanh(), state

    def loss():
        nodes = [(torch.randn(16, 32), torch.zeros(16, 32)) for _ in range(int(torch.randint(4, 14, ())))]
        while len(nodes) > 1:
            at = int(torch.randint(0, len(nodes) - 1, ()))
            nodes[at:at + 2] = [join(nodes[at], nodes[at + 1])]
        return functional.cross_entropy(out(nodes[0][0]), torch.randint(0, 3, (16,)))
    train(steps, model, loss)


@program("recommender")
def recommender(steps):
    tables = nn.ModuleList(nn.EmbeddingBag(500, 16, mode="sum") for _ in range(4))
    top = nn.Sequential(nn.Linear(16 * 4 + 8, 64), nn.ReLU(), nn.Linear(64, 1))
    model = nn.ModuleList([tables, top])

    def loss():
        bags = [table(torch.randint(0, 500, (96,)), torch.arange(0, 96, 3)) for table in tables]
        return functional.binary_cross_entropy_with_logits(top(torch.cat([*bags, torch.randn(32, 8)], 1))[:, 0], torch.rand(32).round())
    train(steps, model, loss, torch.optim.Adagrad(model.parameters(), lr=1e-2))
