#include "trainer/data/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>

#include "hardware/files/foreign_text.h"
#include "hardware/files/json_object.h"
#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "model/error.h"

namespace trainfare::trainer {
namespace {

using hardware::JsonObject;
using model::Architecture;
using model::InputError;

// Reads the ids of the key with ids, or else of the one with a text.
std::vector<int64_t> ReadIds(const JsonObject& line,
                             const char* ids_key,
                             const char* text_key,
                             const WordPiece* tokenizer,
                             const Architecture& architecture,
                             int64_t longest) {
  if (!line.Has(ids_key)) {
    const std::string text = line.Text(text_key);
    if (tokenizer == nullptr) {
      line.FailWith(text_key,
                    fmt::format("needs a vocabulary; name one with "
                                "--tokenizer, or give {}",
                                ids_key));
    }
    return tokenizer->Encode(text, longest);
  }
  std::vector<int64_t> ids =
      line.Counts(ids_key, 0, architecture.vocabulary - 1);
  if (ids.empty()) line.FailWith(ids_key, "expected a list of token ids");
  if (static_cast<int64_t>(ids.size()) > longest) {
    ids.resize(static_cast<size_t>(longest));
  }
  return ids;
}

}  // namespace

std::vector<Example> ReadExamples(const std::string& path,
                                  const WordPiece* tokenizer,
                                  const Architecture& architecture,
                                  int64_t longest) {
  const std::string file = hardware::ReadTextFile(path, "examples");
  std::vector<Example> examples;
  int number = 0;
  hardware::ForEachLine(file, [&](std::string_view text) {
    ++number;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const nlohmann::json value = hardware::ParseJson(text, path, number);
    const JsonObject line(value, path, number);
    Example example;
    example.ids =
        ReadIds(line, "input_ids", "text", tokenizer, architecture, longest);
    if (architecture.family == model::Family::kEncoderDecoder) {
      example.target_ids = ReadIds(
          line, "target_ids", "target_text", tokenizer, architecture, longest);
    } else if (architecture.family == model::Family::kDecoder) {
      if (example.ids.size() < 2) {
        line.FailWith("input_ids",
                      "expected two tokens or more, to predict one");
      }
    } else if (architecture.head == model::Head::kQuestionAnswering) {
      example.start = line.Count("start", 0, longest);
      example.end = line.Count("end", 0, longest);
    } else {
      example.label = line.Count("label", 0, architecture.labels - 1);
    }
    examples.push_back(std::move(example));
  });
  if (examples.empty()) {
    throw InputError(fmt::format(
        "{}: expected one example a line, got an empty data set", path));
  }
  return examples;
}

LengthHistogram LengthHistogram::FromFile(const std::string& path) {
  const std::string file = hardware::ReadTextFile(path, "lengths");
  LengthHistogram histogram;
  int number = 0;
  hardware::ForEachLine(file, [&](std::string_view line) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line[0] == '#') return;
    if (number == 1 && line == "length,count") return;
    int64_t length = 0;
    int64_t count = 0;
    const char* end = line.data() + line.size();
    const auto first = std::from_chars(line.data(), end, length);
    const bool comma =
        first.ec == std::errc() && first.ptr != end && *first.ptr == ',';
    const auto second =
        comma ? std::from_chars(first.ptr + 1, end, count) : first;
    if (!comma || second.ec != std::errc() || second.ptr != end || length < 1 ||
        count < 0) {
      throw InputError(
          path,
          number,
          1,
          fmt::format("expected length,count such as 21,340, got \"{}\"",
                      hardware::OneLine(line, 60)));
    }
    histogram.lengths_.push_back(length);
    histogram.counts_.push_back(static_cast<double>(count));
  });
  if (std::all_of(histogram.counts_.begin(),
                  histogram.counts_.end(),
                  [](double count) { return count <= 0; })) {
    throw InputError(
        fmt::format("{}: expected lengths with counts, got none", path));
  }
  return histogram;
}

std::vector<Example> LengthHistogram::Draw(int64_t count,
                                           const Architecture& architecture,
                                           int64_t first_word,
                                           int64_t longest,
                                           uint64_t seed) const {
  if (first_word >= architecture.vocabulary) {
    throw InputError(
        fmt::format("--lengths: expected words from {} on, got a vocabulary of "
                    "{}",
                    first_word,
                    architecture.vocabulary));
  }
  std::mt19937_64 random(seed);
  std::discrete_distribution<size_t> which(counts_.begin(), counts_.end());
  std::uniform_int_distribution<int64_t> word(first_word,
                                              architecture.vocabulary - 1);
  std::uniform_int_distribution<int64_t> label(
      0, std::max<int64_t>(architecture.labels, 1) - 1);
  std::vector<Example> examples(static_cast<size_t>(count));
  for (Example& example : examples) {
    // A decoder predicts from one token the next: it takes two.
    const int64_t least =
        architecture.family == model::Family::kDecoder ? 2 : 1;
    const int64_t length =
        std::max(std::min(lengths_[which(random)], longest), least);
    example.ids.resize(static_cast<size_t>(length));
    for (int64_t& id : example.ids) id = word(random);
    if (architecture.family == model::Family::kEncoderDecoder) {
      example.target_ids.resize(static_cast<size_t>(length));
      for (int64_t& id : example.target_ids) id = word(random);
    }
    example.label = label(random);
    example.start = word(random) % length;
    example.end = word(random) % length;
  }
  return examples;
}

}  // namespace trainfare::trainer
