#pragma once

// The part of LibTorch that the trainer uses: tensors and autograd. The C++
// module library (torch/torch.h) is left out; it triples compile time.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
