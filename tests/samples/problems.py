# SPDX-License-Identifier: MIT
"""Allocation problems whose optimum is known: a rectangle of bytes and time, cut into blocks."""
import random


def blocks(seed, wanted, moments, units):
    """So many blocks (begin, end, bottom, top) that fill [0, moments) x [0, units). The one to be cut is chosen by its area."""
    draw = random.Random(seed)
    made = [(0, moments, 0, units)]
    while len(made) < wanted:
        begin, end, bottom, top = made.pop(draw.choices(range(len(made)), [(b - a) * (d - c) for a, b, c, d in made])[0])
        if draw.random() < 0.5 and end - begin >= 8:
            at = draw.randint(begin + (end - begin) // 4, end - (end - begin) // 4)
            made += [(begin, at, bottom, top), (at, end, bottom, top)]
        elif top - bottom >= 4:
            at = draw.randint(bottom + (top - bottom) // 4, top - (top - bottom) // 4)
            made += [(begin, end, bottom, at), (begin, end, at, top)]
        else:
            made.append((begin, end, bottom, top))
    draw.shuffle(made)
    return made


def table(seed, wanted):
    """A problem of so many blocks which just fit into 1 MiB."""
    rows = [f"{number},{begin},{end},{512 * (top - bottom)}"
            for number, (begin, end, bottom, top) in enumerate(blocks(seed, wanted, 1000, 2048))]
    return "\n".join(["id,lower,upper,size", *rows]) + "\n"
