#pragma once

// Labelled examples as token ids: from JSON Lines, or drawn at random with the
// lengths of a histogram.

#include <cstdint>
#include <string>
#include <vector>

#include "model/architecture.h"
#include "trainer/data/wordpiece.h"

namespace trainfare::trainer {

struct Example {
  std::vector<int64_t> ids;         // with [CLS] and [SEP], without padding
  std::vector<int64_t> target_ids;  // of a model of two sides
  int64_t label = 0;                // sequence classification
  int64_t start = 0;  // question answering: first and last answer token
  int64_t end = 0;
};

// One JSON object a line: `text` (needs a tokenizer) or `input_ids`, and
// `label`, or `start` and `end` for question answering, or `target_text` (or
// `target_ids`) for a model of two sides; a decoder alone needs no more. Texts
// are cut to `longest` tokens. Throws InputError "file:line: key: expected X,
// got Y".
std::vector<Example> ReadExamples(const std::string& path,
                                  const WordPiece* tokenizer,
                                  const model::Architecture& architecture,
                                  int64_t longest);

// How often each length occurs: a CSV file with the columns length,count.
class LengthHistogram {
 public:
  static LengthHistogram FromFile(const std::string& path);
  // `count` examples of random words and labels, lengths cut to `longest`.
  std::vector<Example> Draw(int64_t count,
                            const model::Architecture& architecture,
                            int64_t first_word,
                            int64_t longest,
                            uint64_t seed) const;

 private:
  std::vector<int64_t> lengths_;
  std::vector<double> counts_;
};

}  // namespace trainfare::trainer
