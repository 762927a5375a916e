#!/usr/bin/env python3
"""One epoch of the Fashion-MNIST CNN: fornax against PyTorch, each with two threads, in one run.

usage: fashion_mnist.py FORNAX [DATA]

Times include loading and shuffling. Memory is the peak of the resident set above that of the idle process: for fornax
`fornax devices`, for PyTorch the interpreter after `import torch`. Without PyTorch only fornax is measured
(pip install torch).
"""
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

EPOCHS = 2
THREADS = 2
DATA = "/usr/share/datasets/fashion-mnist"


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run_measured(command):
    """Runs a command; its peak resident set in bytes."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return usage.ru_maxrss * 1024


def measure_fornax(fornax, data):
    idle = run_measured([fornax, "devices"])
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        peak = run_measured([fornax, "train", "--model", "cnn", "--data", data, "--device", f"cpu?threads={THREADS}",
                             "--epochs", str(EPOCHS), "--log", log, "--out", os.path.join(folder, "out.safetensors")])
        with open(log, encoding="utf-8") as lines:
            epochs = [record for record in map(json.loads, lines) if "epoch_seconds" in record]
    return epochs[-1]["epoch_seconds"], epochs[-1]["test_accuracy"], peak - idle


def read_idx(path, header):
    with gzip.open(path) as file:
        return bytearray(file.read()[header:])


def measure_torch(data):
    import torch
    from torch import nn

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    idle = peak_bytes()

    def load(part):
        x = torch.frombuffer(read_idx(f"{data}/{part}-images-idx3-ubyte.gz", 16), dtype=torch.uint8)
        y = torch.frombuffer(read_idx(f"{data}/{part}-labels-idx1-ubyte.gz", 8), dtype=torch.uint8)
        return x.view(-1, 1, 28, 28).float() / 255, y.long()

    x, y = load("train")
    test_x, test_y = load("t10k")
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(EPOCHS):
        begin = time.perf_counter()
        for batch in torch.randperm(len(x)).split(64):
            loss = nn.functional.cross_entropy(net(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seconds = time.perf_counter() - begin
    with torch.no_grad():
        accuracy = (net(test_x).argmax(1) == test_y).float().mean().item()
    return seconds, accuracy, peak_bytes() - idle


def show(name, seconds, accuracy, memory):
    print(f"{name:<8} epoch {seconds:6.2f} s  accuracy {accuracy:.4f}  memory {memory / 2**20:6.0f} MiB", flush=True)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    data = sys.argv[2] if len(sys.argv) == 3 else DATA
    ours = measure_fornax(sys.argv[1], data)
    show("fornax", *ours)
    try:
        theirs = measure_torch(data)
    except ImportError:
        print("PyTorch is not installed (pip install torch): no comparison")
        return
    show("PyTorch", *theirs)
    print(f"ratio    epoch {ours[0] / theirs[0]:6.2f}    (aim: at most 0.60)      memory {ours[2] / theirs[2]:6.2f}")


if __name__ == "__main__":
    main()
