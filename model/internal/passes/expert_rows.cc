#include "model/internal/passes/expert_rows.h"

namespace trainfare::model::internal {
namespace {

// Launches of PyTorch's operations on indices, by its sources: the places of
// what is not zero (Nonzero.cu: two to count, two to select, one to lay out),
// and rows added by index with a sort of it (Indexing.cu: the index, its order,
// the sums).
constexpr int64_t kNonzeroLaunches = 5;
constexpr int64_t kIndexPutLaunches = 10;
// CUB's sort of keys of 64 bits: a histogram, its sums, eight passes.
constexpr int64_t kSortLaunches = 10;

// Rows side by side by operations of the framework: Transformers 5,
// grouped_mm_experts_forward() in integrations/moe.py of
// huggingface/transformers@8b584a67.
bool GroupsByOperations(const Pass& pass) {
  return pass.experts == ExpertKernels::kGrouped &&
         pass.rules.launches == Launches::kByFramework;
}

// The numbers of each token as often as it has rows, the rows' order by expert
// and back, experts and weights in it, and where each expert's begin.
void OrderRows(Pass& pass, const Routed& r) {
  constexpr int64_t kNumbers = 2;
  constexpr int64_t kInOrder = 2;
  constexpr int64_t kBeginnings = 4;  // a cast, a histogram (2), its sums
  const size_t first = pass.next();
  pass.Copy("routing", r.rows, kIndexBytes, kIndexBytes);
  pass.RepeatSince(first,
                   kNumbers + 2 * kSortLaunches + kInOrder + kBeginnings);
}

// Rows that are not zero, of so many.
void FindRows(Pass& pass, const Routed& r, int64_t bytes) {
  const size_t first = pass.next();
  pass.Reduction("routing", r.each, r.rows, bytes, 0, 1);
  pass.RepeatSince(first, kNonzeroLaunches);
}

// One expert's among the experts of all rows.
void MaskRows(Pass& pass, const Routed& r) {
  pass.Elementwise("routing", r.rows, kIndexBytes, kMaskBytes, 1);
  FindRows(pass, r, kMaskBytes);
}

// Rows laid into zeros by index, where those of one place add up.
void LayInto(Pass& pass, KernelName name, int64_t places, int64_t rows) {
  const int64_t h = pass.architecture.expert_width();
  pass.Copy(name, places * h, 0, pass.element);
  pass.Copy(name, rows, kIndexBytes, kIndexBytes);
  pass.last().launches = kIndexPutLaunches - 1;
  pass.Elementwise(name, rows * h, 2 * pass.element, pass.element, 1);
}

void GradientOfWeights(Pass& pass, int64_t rows) {
  const size_t first = pass.next();
  pass.Copy("routing gradient", rows, kIndexBytes, kIndexBytes);
  pass.RepeatSince(first, kIndexPutLaunches);
}

// The gradients of rows that were weighted, and of their weights.
void UnweighGradients(Pass& pass, int64_t rows) {
  const int64_t elements = rows * pass.architecture.expert_width();
  pass.Elementwise(
      "unpermute gradient", elements, pass.element, pass.element, 1);
  pass.Elementwise(
      "unpermute gradient", elements, 2 * pass.element, pass.element, 1);
  pass.Reduction("unpermute gradient", rows, elements, pass.element, 0, 1);
}

// Of all rows at once, which masked loops weigh in fp32: their weights are.
void AddMaskedRows(Pass& pass, const Routed& r, int64_t tokens) {
  const int64_t h = pass.architecture.expert_width();
  const size_t first = pass.next();
  MaskRows(pass, r);
  pass.Copy("unpermute tokens", r.each * h, pass.element, pass.element);
  pass.RepeatSince(first, r.groups);
  pass.Elementwise("unpermute tokens", r.rows * h, pass.element, kSingle, 1);
  pass.Reduction("unpermute tokens", tokens, r.rows * h, kSingle, 0, 1);
  pass.last().bytes_written += tokens * h * kSingle;
  pass.Copy("unpermute tokens", tokens * h, kSingle, pass.element);
}

// Each expert takes the gradients of its rows out of a copy of all.
void GatherMaskedGradients(Pass& pass, const Routed& r, int64_t tokens) {
  const int64_t h = pass.architecture.expert_width();
  const int64_t all = r.rows * h;
  constexpr KernelName kName = "unpermute gradient";
  pass.Copy(kName, tokens * h, pass.element, kSingle);
  pass.Elementwise(kName, all, kSingle, kSingle, 1);
  pass.Copy(kName, all, kSingle, pass.element);
  pass.Elementwise(kName, all, kSingle + pass.element, kSingle, 1);
  pass.Reduction(kName, r.rows, all, kSingle, 0, 1);
  const size_t first = pass.next();
  pass.Copy(kName, all, pass.element, pass.element);
  FindRows(pass, r, kMaskBytes);
  pass.Copy(kName, r.each * h, 0, pass.element);
  FindRows(pass, r, kMaskBytes);
  pass.Copy(kName, r.each * h, pass.element, pass.element);
  pass.RepeatSince(first, r.groups);
}

}  // namespace

void RoutingForward(Pass& pass, const Routed& r, int64_t tokens) {
  const Architecture& a = pass.architecture;
  pass.Gemm("router", tokens, a.scored_experts(), a.hidden);
  pass.Reduction("routing",
                 tokens,
                 tokens * a.scored_experts(),
                 pass.element,
                 4,
                 kSoftmaxForwardFlops + 2,
                 1);
  const bool groups = GroupsByOperations(pass);
  if (!FindsRows(pass.experts) && !groups) return;
  // The best, their sum and share, a cast; then a mask of all pairs.
  const size_t first = pass.next();
  pass.Elementwise("routing", r.rows, 4, 4, 1);
  pass.RepeatSince(first, 4);
  if (groups) {
    OrderRows(pass, r);
  } else if (!MasksRows(pass.experts)) {
    pass.Copy("routing", r.rows * a.experts, 0, kIndexBytes);
    pass.Copy("routing", r.rows, kIndexBytes, kIndexBytes);
  }
}

void GatherRows(Pass& pass, const Routed& r) {
  const int64_t h = pass.architecture.expert_width();
  const auto copy = [&](int64_t rows) {
    pass.Copy("permute tokens", rows * h, pass.element, pass.element);
  };
  if (!FindsRows(pass.experts)) {
    copy(r.rows);
    // Each token's rows first, then by expert.
    if (GroupsByOperations(pass)) copy(r.rows);
    return;
  }
  const bool masks = MasksRows(pass.experts);
  if (masks) copy(r.rows);
  const size_t first = pass.next();
  if (masks) {
    MaskRows(pass, r);
  } else {
    FindRows(pass, r, kIndexBytes);
  }
  copy(r.each);
  pass.RepeatSince(first, r.groups);
}

void AddRows(Pass& pass, const Routed& r, int64_t tokens) {
  const int64_t h = pass.architecture.expert_width();
  if (MasksRows(pass.experts)) {
    AddMaskedRows(pass, r, tokens);
    return;
  }
  if (!FindsRows(pass.experts)) {
    const bool apart = GroupsByOperations(pass);
    pass.Elementwise("unpermute tokens",
                     r.rows * h,
                     pass.element,
                     pass.element,
                     apart ? 1 : 2);
    if (!apart) return;
    pass.Copy("unpermute tokens", r.rows * h, pass.element, pass.element);
    pass.Reduction("unpermute tokens", tokens, r.rows * h, pass.element, 0, 1);
    pass.last().bytes_written += tokens * h * pass.element;
    return;
  }
  pass.Copy("unpermute tokens", tokens * h, 0, pass.element);
  const size_t first = pass.next();
  pass.Copy(
      "unpermute tokens", r.each, 2 * kIndexBytes + pass.element, pass.element);
  pass.Elementwise(
      "unpermute tokens", r.each * h, pass.element, pass.element, 1);
  pass.Elementwise(
      "unpermute tokens", r.each * h, 2 * pass.element, pass.element, 1);
  pass.RepeatSince(first, r.groups);
}

void GatherRowGradients(Pass& pass, const Routed& r, int64_t tokens) {
  const int64_t h = pass.architecture.expert_width();
  if (MasksRows(pass.experts)) {
    GatherMaskedGradients(pass, r, tokens);
    return;
  }
  if (GroupsByOperations(pass)) {
    LayInto(pass, "unpermute gradient", r.rows, r.rows);
    UnweighGradients(pass, r.rows);
    GradientOfWeights(pass, r.rows);
    return;
  }
  if (!FindsRows(pass.experts)) {
    pass.Elementwise(
        "unpermute gradient", r.rows * h, 2 * pass.element, pass.element, 2);
    return;
  }
  const size_t first = pass.next();
  pass.Copy("unpermute gradient", r.each * h, pass.element, pass.element);
  UnweighGradients(pass, r.each);
  // Added to those of all pairs.
  GradientOfWeights(pass, r.each);
  pass.RepeatSince(first, r.groups);
}

void AddRowGradients(Pass& pass, const Routed& r, int64_t tokens) {
  const int64_t h = pass.architecture.expert_width();
  constexpr KernelName kName = "permute gradient";
  if (GroupsByOperations(pass)) {
    LayInto(pass, kName, r.rows, r.rows);
    LayInto(pass, kName, tokens, r.rows);
    return;
  }
  if (!FindsRows(pass.experts)) {
    pass.Elementwise(kName, r.rows * h, pass.element, pass.element, 1);
    return;
  }
  // Each expert lays its rows into zeros for all there are, which are added to
  // those of the experts before.
  const bool masks = MasksRows(pass.experts);
  const int64_t places = masks ? r.rows : tokens;
  const size_t first = pass.next();
  if (masks) FindRows(pass, r, kMaskBytes);
  LayInto(pass, kName, places, r.each);
  pass.Elementwise(kName, places * h, 2 * pass.element, pass.element, 1);
  pass.RepeatSince(first, r.groups);
  if (!masks) return;
  pass.Reduction(kName, tokens, r.rows * h, pass.element, 0, 1);
  pass.last().bytes_written += tokens * h * pass.element;
}

}  // namespace trainfare::model::internal
