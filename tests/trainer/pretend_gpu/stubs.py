"""Stubs of what LibTorch asks CUDA's libraries for.

    stubs.py LIBTORCH_LIB SOURCE VERSIONS LINKS

Writes C functions that do nothing and return 0 for every symbol that LibTorch's
CUDA libraries leave to others, a version script that gives them the versions
they are asked for with, and the names of those other libraries, one a line.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ASKING = ("libtorch_cuda.so", "libc10_cuda.so", "libtorch_nvshmem.so",
          "libcaffe2_nvrtc.so")
# Of libraries that are there without a GPU.
THERE = re.compile(r"lib(torch|c10|c|m|dl|rt|pthread|stdc\+\+|gcc_s|gomp)[._]"
                   r"|ld-linux|libcupti|libcusolver")
OURS = re.compile(r"(cu|nccl|nvshmem|nvrtc|__cuda)")


def lines(*command):
    return subprocess.run(command, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()


def main(folder, source, versions, links):
    by_version = defaultdict(set)
    needed = set()
    for name in ASKING:
        library = Path(folder) / name
        for line in lines("nm", "-D", "--undefined-only",
                          "--with-symbol-versions", str(library)):
            symbol, _, version = line.split()[-1].partition("@")
            if OURS.match(symbol):
                by_version[version.lstrip("@")].add(symbol)
        for line in lines("readelf", "--dynamic", "--wide", str(library)):
            match = re.search(r"\(NEEDED\).*\[(.*)\]", line)
            if match and not THERE.match(match[1]):
                needed.add(match[1])
    symbols = sorted(set().union(*by_version.values()))
    Path(source).write_text("".join(
        f"__attribute__((weak)) int {s}(void) {{ return 0; }}\n"
        for s in symbols))
    Path(versions).write_text("".join(
        f"{version} {{ global: {'; '.join(sorted(names))}; }};\n"
        for version, names in sorted(by_version.items()) if version))
    Path(links).write_text("".join(f"{n}\n" for n in sorted(needed)))


main(*sys.argv[1:])
