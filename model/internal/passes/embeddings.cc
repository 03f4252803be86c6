#include "model/internal/passes/embeddings.h"

#include <array>

#include "model/internal/passes/casts.h"
#include "model/internal/passes/matrices.h"
#include "model/internal/passes/norms.h"
#include "model/internal/passes/products.h"
#include "model/logits.h"

namespace trainfare::model::internal {
namespace {

// Vaswani et al. 2017: word vectors times sqrt(h), plus fixed sinusoids.
bool Sinusoids(const Pass& pass) {
  const Architecture& a = pass.architecture;
  return a.two_sided() && a.position_kind == PositionKind::kTable &&
         a.positions == 0;
}

// Rows of so many tables, summed.
void GatherTableRows(Pass& pass,
                     int64_t tables,
                     int64_t tokens,
                     int64_t width) {
  const int64_t elements = tokens * width;
  const int64_t gathers = pass.EagerOutside() ? tables : 1;
  const bool in_one = Sinusoids(pass) && !pass.EagerOutside();
  for (int64_t i = 0; i < gathers; ++i) {
    Kernel& kernel =
        pass.Push("embedding gather", KernelKind::kEmbedding, elements);
    const int64_t rows_read = pass.EagerOutside() ? 1 : tables;
    kernel.bytes_read = rows_read * (elements * 4 + tokens * kIndexBytes);
    kernel.bytes_written = elements * (pass.EagerOutside() ? 4 : pass.wide);
    kernel.vector_flops = (rows_read - 1 + (in_one ? 2 : 0)) * elements;
  }
  if (!pass.EagerOutside()) return;
  if (Sinusoids(pass)) pass.Elementwise("embedding scale", elements, 4, 4, 1);
  const int64_t added = tables - 1 + (Sinusoids(pass) ? 1 : 0);
  for (int64_t i = 0; i < added; ++i) {
    pass.Elementwise("embedding add", elements, 8, 4, 1);
  }
}

// Tables narrower than the blocks.
void WidenEmbeddings(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  CastOperand(pass, tokens * a.word_width());
  pass.Gemm("embedding projection", tokens, a.hidden, a.word_width());
}

}  // namespace

void EmbeddingsForward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t width = a.embedding_width();
  const bool words_alone = a.word_width() != width;
  int64_t tables = words_alone ? 0 : 1;
  if (a.table_rows() > 0) ++tables;
  if (a.token_types > 0) ++tables;
  if (words_alone) {
    GatherTableRows(pass, 1, tokens, a.word_width());
    WidenEmbeddings(pass, tokens);
  }
  if (tables > 0) GatherTableRows(pass, tables, tokens, width);
  if (words_alone && tables > 0) {
    pass.Elementwise(
        "embedding add", tokens * width, 2 * pass.wide, pass.wide, 1);
  }
  const int64_t rows = pass.OfTokens(tokens);
  if (a.embedding_layer_norm) NormForward(pass, rows, width, pass.wide);
  if (pass.dropout && !pass.Compiled()) {
    Dropout(pass, rows * width, pass.wide);
  }
  if (a.projects_embeddings() && !words_alone) WidenEmbeddings(pass, tokens);
}

// Gradients of tables are dense: zeroed, then rows added. A table that the
// logits are made with too has that gradient added to it.
void EmbeddingsBackward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t words = a.word_width();
  const int64_t width = a.embedding_width();
  const bool words_alone = words != width;
  const auto through_projection = [&] {
    LinearBackward(pass,
                   Matrix::kEmbeddings,
                   tokens,
                   a.hidden,
                   words,
                   a.family == Family::kEncoder,
                   Input::kNarrowed);
  };
  if (a.projects_embeddings() && !words_alone) through_projection();
  const int64_t between = pass.OfTokens(tokens);
  DropoutBackward(pass, between * width, pass.wide);
  if (a.embedding_layer_norm) NormBackward(pass, between, width, pass.wide);
  if (Sinusoids(pass) && pass.EagerOutside()) {
    pass.Elementwise("embedding scale gradient", tokens * width, 4, 4, 1);
  }
  if (words_alone) through_projection();
  TableGradient(pass, a.vocabulary, tokens, words);
  for (const int64_t rows : std::array{a.table_rows(), a.token_types}) {
    if (rows > 0) TableGradient(pass, rows, tokens, width);
  }
  AddTiedGradient(pass);
}

void TableGradient(Pass& pass, int64_t rows, int64_t tokens, int64_t width) {
  const int64_t elements = tokens * width;
  const int64_t bytes = ParameterWidth(pass.workload);
  pass.Copy("zero table gradient", rows * width, 0, bytes);
  pass.last().parameter_bytes = pass.last().bytes();
  Kernel& kernel =
      pass.Push("table gradient", KernelKind::kEmbedding, elements);
  kernel.vector_flops = elements;
  kernel.bytes_read = 2 * elements * bytes + tokens * kIndexBytes;
  kernel.bytes_written = elements * bytes;
}

void AddTiedGradient(Pass& pass) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  if (PredictsVocabulary(w) && pass.EagerOutside() && !a.untied_output) {
    AddWeightGradient(pass,
                      "tied gradient add",
                      a.vocabulary * a.word_width(),
                      ParameterWidth(w));
  }
}

void AddWeightGradient(Pass& pass,
                       KernelName name,
                       int64_t elements,
                       int64_t sum_width) {
  pass.Elementwise(
      name, elements, ParameterWidth(pass.workload) + sum_width, sum_width, 1);
  pass.last().parameter_bytes = pass.last().bytes();
  pass.last().parameter_bytes_written = pass.last().bytes_written;
}

}  // namespace trainfare::model::internal
