#pragma once

// Numbers that a step computes in, and how wide they are.

#include <array>
#include <cstdint>
#include <string_view>

#include "model/rounding.h"
#include "model/words.h"

namespace trainfare::model {

enum class Precision {
  kFp32,
  kTf32,
  kFp16,
  kBf16,
  // The products of the blocks have operands of 8 bits, cast for each of them;
  // all else is as in bf16 (Micikevicius et al. 2022; Transformer Engine).
  kFp8,
  // The same of 4 bits, with a scale of 8 bits a block of them and one a tensor
  // (NVIDIA 2025, "Pretraining Large Language Models with NVFP4",
  // arXiv:2509.25149; Transformer Engine's NVFP4BlockScaling).
  kFp4,
};
template <>
inline constexpr auto kWords<Precision> =
    Words<Precision>("precision",
                     {{Precision::kFp32, "fp32"},
                      {Precision::kTf32, "tf32"},
                      {Precision::kFp16, "fp16"},
                      {Precision::kBf16, "bf16"},
                      {Precision::kFp8, "fp8"},
                      {Precision::kFp4, "fp4"}});
// Of PyTorch, Transformers, Lightning and Composer.
template <>
inline constexpr auto kWordAliases<Precision> =
    std::to_array<Word<Precision>>({{Precision::kFp32, "float32"},
                                    {Precision::kFp32, "float"},
                                    {Precision::kFp16, "float16"},
                                    {Precision::kFp16, "half"},
                                    {Precision::kFp16, "mixed_fp16"},
                                    {Precision::kFp16, "fp16-mixed"},
                                    {Precision::kFp16, "16-mixed"},
                                    {Precision::kFp16, "amp_fp16"},
                                    {Precision::kBf16, "bfloat16"},
                                    {Precision::kBf16, "mixed_bf16"},
                                    {Precision::kBf16, "bf16-mixed"},
                                    {Precision::kBf16, "amp_bf16"},
                                    {Precision::kFp8, "float8"},
                                    {Precision::kFp4, "nvfp4"}});
inline constexpr std::string_view kHintOfBase =
    "weights of 4 or 8 bits are those beside adapters, "
    "trainable.lora.base_bits "
    "with precision bf16";
inline constexpr std::string_view kHintOfMx =
    "precision fp8 with fp8.scaling=blocks";
inline constexpr std::string_view kHintOfFour =
    "fp4, whose blocks are NVFP4's, is the nearest";
template <>
inline constexpr auto kWordHints<Precision> =
    std::to_array<WordHint>({{"amp", "fp16 or bf16, each mixed with fp32"},
                             {"mixed", "fp16 or bf16, each mixed with fp32"},
                             {"nf4", kHintOfBase},
                             {"int4", kHintOfBase},
                             {"int8", kHintOfBase},
                             {"4bit", kHintOfBase},
                             {"8bit", kHintOfBase},
                             {"mxfp8", kHintOfMx},
                             {"mxfp4", kHintOfFour}});

// What the numbers of a tensor in 8 bits are multiplied by.
enum class Fp8Scaling {
  kDelayed,  // by its largest values in steps before (Transformer Engine)
  kTensor,   // by its largest value, which is read first (Transformer Engine's
             // current scaling, torchao's tensorwise)
  kRows,    // each row by its largest value, so that what is read by columns is
            // cast once more (torchao's rowwise)
  kBlocks,  // each 32 numbers by theirs, with a byte beside them (OCP MX)
};
template <>
inline constexpr auto kWords<Fp8Scaling> =
    Words<Fp8Scaling>("scaling of 8 bits",
                      {{Fp8Scaling::kDelayed, "delayed"},
                       {Fp8Scaling::kTensor, "tensor"},
                       {Fp8Scaling::kRows, "rows"},
                       {Fp8Scaling::kBlocks, "blocks"}});

// Products of the blocks under Precision::kFp8; of no effect under others.
struct Fp8 {
  Fp8Scaling scaling = Fp8Scaling::kDelayed;
  // Those that make gradients of weights are in 8 bits, too; else in 16.
  bool weight_gradients = true;
  // Matrices of the blocks are cast before they are gathered, which halves what
  // is sent (torchtitan's enable_fsdp_float8_all_gather).
  bool gathered = false;
  friend bool operator==(const Fp8&, const Fp8&) = default;
};

// Bytes of an fp32 number, as gradients and master parameters are kept.
inline constexpr int64_t kSingle = 4;
// Bytes of an fp16 or bf16 number.
inline constexpr int64_t kHalf = 2;
// Bytes of one element of the tensors that go from kernel to kernel.
constexpr int64_t BytesPerElement(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
    case Precision::kTf32:
      return kSingle;
    case Precision::kFp16:
    case Precision::kBf16:
    case Precision::kFp8:
    case Precision::kFp4:
      break;
  }
  return kHalf;
}
// Whether the products of the blocks have operands narrower than all else.
constexpr bool NarrowsOperands(Precision precision) {
  return precision == Precision::kFp8 || precision == Precision::kFp4;
}
// Bytes of an operand that was cast for a product in 8 bits.
inline constexpr int64_t kBytesOfFp8 = 1;
// Of blocks of them; a scale is a byte (OCP Microscaling Formats 1.0, 5.1).
inline constexpr int64_t kNumbersOfFp8Scale = 32;
// The same of 4 bits (arXiv:2509.25149, section 2).
inline constexpr int64_t kNumbersOfFp4Scale = 16;
// Bytes of so many operands that were cast for products of a step in
// `precision`; in 4 bits with their scales.
constexpr int64_t OperandBytes(Precision precision, int64_t numbers) {
  if (precision != Precision::kFp4) return numbers * kBytesOfFp8;
  return CeilDivide(numbers, 2) + CeilDivide(numbers, kNumbersOfFp4Scale);
}
// What all but the products of the blocks are in: bf16 where these cast their
// operands, else the same.
Precision OutsideBlockProducts(Precision precision);

}  // namespace trainfare::model
