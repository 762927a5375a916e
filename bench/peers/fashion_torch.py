#!/usr/bin/env python3
"""The Fashion-MNIST CNN in PyTorch, as a peer to measure against: the network, batch size and optimizer of
`fornax train --model cnn`, on two threads.

usage: fashion_torch.py [EPOCHS [DATA]]

Prints a line of JSON per epoch. Times include shuffling and gathering the batches. Memory is the resident set: of the
process after `import torch` (idle), and its peak. Images are kept as bytes and scaled per batch, which takes PyTorch no
longer and a fourth of the memory.
"""
import gzip
import json
import sys
import time

import torch
from torch import nn


def resident(field):
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def read_idx(path, header):
    with gzip.open(path) as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


def load(folder, part):
    images = read_idx(f"{folder}/{part}-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28)
    return images, read_idx(f"{folder}/{part}-labels-idx1-ubyte.gz", 8).long()


def main():
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    folder = sys.argv[2] if len(sys.argv) > 2 else "/usr/share/datasets/fashion-mnist"
    torch.set_num_threads(2)
    torch.manual_seed(0)
    idle = resident("VmRSS")
    images, labels = load(folder, "train")
    test_images, test_labels = load(folder, "t10k")
    network = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    for epoch in range(epochs):
        begin = time.perf_counter()
        for batch in torch.randperm(len(images)).split(64):
            loss = nn.functional.cross_entropy(network(images[batch].float() / 255), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seconds = time.perf_counter() - begin
        with torch.no_grad():
            hits = sum((network(x.float() / 255).argmax(1) == y).sum().item()
                       for x, y in zip(test_images.split(1000), test_labels.split(1000)))
        print(json.dumps({"epoch": epoch + 1, "epoch_seconds": seconds, "test_accuracy": hits / len(test_labels),
                          "idle_bytes": idle, "peak_bytes": resident("VmHWM")}), flush=True)


if __name__ == "__main__":
    main()
