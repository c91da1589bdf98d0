#!/usr/bin/env bash
# Fetches LibTorch, which the cargo feature `tch` needs, from PyPI's wheel of PyTorch, and prints the
# environment to build and to run with:
#
#     eval "$(examples/devices/libtorch.sh [cpu|cuda] [FOLDER])"
#
# For Linux on x86-64; needs Python 3 with pip. `cpu` (the default) downloads 0.9 GB and takes 1.8 GB of
# disk; `cuda` downloads 3 GB and takes 7 GB. What is there already is not fetched again.
set -euo pipefail

version=2.9.0 # what tch 0.22 is for
kind=${1:-cpu}
folder=$(mkdir -p "${2:-target/libtorch}" && cd "${2:-target/libtorch}" && pwd)/$kind
pip=(python3 -m pip --disable-pip-version-check)

case $kind in
cpu)
    # The wheel's libtorch.so wants all CUDA libraries; libtorch_cpu.so wants only these two.
    wheels=("torch==$version" nvidia-cuda-runtime-cu12==12.8.90 nvidia-cuda-cupti-cu12==12.8.90)
    if [[ ! -e $folder/complete ]]; then
        mkdir -p "$folder/wheels" "$folder/lib"
        "${pip[@]}" download --no-deps --only-binary=:all: --python-version 3.12 \
            --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 \
            --platform manylinux2014_x86_64 --dest "$folder/wheels" "${wheels[@]}" >&2
        for wheel in "$folder"/wheels/*.whl; do
            python3 -m zipfile -e "$wheel" "$folder/packages"
        done
        rm -r "$folder/wheels"
        ln -sfn packages/torch/include "$folder/include"
        for library in libtorch_cpu.so libc10.so; do
            ln -sf "../packages/torch/lib/$library" "$folder/lib/$library"
        done
        ln -sf libtorch_cpu.so "$folder/lib/libtorch.so"
        touch "$folder/complete"
    fi
    root=$folder
    ;;
cuda)
    if [[ ! -e $folder/complete ]]; then
        "${pip[@]}" install --only-binary=:all: --python-version 3.12 --platform manylinux_2_28_x86_64 \
            --platform manylinux_2_27_x86_64 --platform manylinux_2_17_x86_64 \
            --platform manylinux2014_x86_64 --target "$folder/packages" "torch==$version" >&2
        touch "$folder/complete"
    fi
    root=$folder/packages/torch
    ;;
*)
    echo "libtorch.sh: expected cpu or cuda, found $kind" >&2
    exit 2
    ;;
esac

echo "export LIBTORCH='$root'"
# Its libraries find those of CUDA beside them.
echo "export LD_LIBRARY_PATH='$folder/packages/torch/lib'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
