#include "trainer/data/wordpiece.h"

#include <fmt/format.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "hardware/files/foreign_text.h"
#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "model/error.h"
#include "trainer/data/json_file.h"

namespace trainfare::trainer {
namespace {

using model::InputError;
using nlohmann::json;

constexpr int64_t kLargestId = 1'000'000'000;

constexpr char32_t kDottedCapitalI = 0x130;  // the one letter that grows
constexpr char32_t kDotAbove = 0x307;

// The reference's character classes are those of Unicode 8: what came later is
// a letter to it. Models were trained on ids made that way.
bool IsInUnicode8(char32_t c) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] <= 8;
}

bool IsRemoved(char32_t c) {
  if (c == 0 || c == 0xfffd) return true;
  if (c == '\t' || c == '\n' || c == '\r') return false;
  switch (u_charType(static_cast<UChar32>(c))) {
    case U_CONTROL_CHAR:
    case U_FORMAT_CHAR:
    case U_PRIVATE_USE_CHAR:
      return IsInUnicode8(c);
    default:
      return false;
  }
}

bool IsSpace(char32_t c) { return u_isUWhiteSpace(static_cast<UChar32>(c)); }

// The blocks that BERT splits into single characters.
bool IsChinese(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
         (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

// All ASCII that is neither letter, digit nor space counts, as in BERT.
bool IsPunctuation(char32_t c) {
  if ((c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
      (c >= 123 && c <= 126)) {
    return true;
  }
  return u_ispunct(static_cast<UChar32>(c)) != 0 && IsInUnicode8(c);
}

std::u32string FromUtf8(std::string_view text) {
  const auto unicode = icu::UnicodeString::fromUTF8(
      icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
  std::u32string points;
  points.reserve(text.size());
  for (int32_t at = 0; at < unicode.length(); at = unicode.moveIndex32(at, 1)) {
    points.push_back(static_cast<char32_t>(unicode.char32At(at)));
  }
  return points;
}

std::string ToUtf8(std::u32string_view points) {
  std::string text;
  for (const char32_t c : points) {
    icu::UnicodeString(static_cast<UChar32>(c)).toUTF8String(text);
  }
  return text;
}

std::u32string WithoutAccents(const std::u32string& points) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfd = icu::Normalizer2::getNFDInstance(status);
  const icu::UnicodeString given = icu::UnicodeString::fromUTF32(
      reinterpret_cast<const UChar32*>(points.data()),
      static_cast<int32_t>(points.size()));
  const icu::UnicodeString decomposed = nfd->normalize(given, status);
  ENSURE(U_SUCCESS(status), "ICU carries the data of NFD");
  std::u32string kept;
  for (int32_t at = 0; at < decomposed.length();
       at = decomposed.moveIndex32(at, 1)) {
    const UChar32 c = decomposed.char32At(at);
    const auto point = static_cast<char32_t>(c);
    if (u_charType(c) != U_NON_SPACING_MARK || !IsInUnicode8(point)) {
      kept.push_back(point);
    }
  }
  return kept;
}

// One object of a tokenizer's files, whose keys may be missing or null but not
// of another type.
class Options {
 public:
  Options(const std::string& path, std::string name, const json& file)
      : path_(path), name_(std::move(name)) {
    const auto found = file.find(name_);
    if (found == file.end() || found->is_null()) return;
    if (!found->is_object()) {
      throw InputError(fmt::format("{}: {}: expected an object, got {}",
                                   path_,
                                   name_,
                                   hardware::ShownJson(*found)));
    }
    object_ = &*found;
  }
  // The whole file is the object.
  Options(const std::string& path, const json& file)
      : path_(path), object_(&file) {}

  bool there() const { return object_ != nullptr; }

  const json& Object(const char* key) const {
    const json* value = Find(key);
    if (value == nullptr || !value->is_object()) Fail(key, "an object", value);
    return *value;
  }
  std::string Text(const char* key, const std::string& fallback) const {
    const json* value = Find(key);
    if (value == nullptr) return fallback;
    if (!value->is_string()) Fail(key, "a text", value);
    return value->get<std::string>();
  }
  size_t Count(const char* key, size_t fallback) const {
    constexpr uint64_t kMost = 1'000'000;
    const json* value = Find(key);
    if (value == nullptr) return fallback;
    if (!value->is_number_unsigned() || value->get<uint64_t>() > kMost) {
      Fail(key, fmt::format("a count of at most {}", kMost), value);
    }
    return value->get<size_t>();
  }
  bool Flag(const char* key, bool fallback) const {
    const json* value = Find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) Fail(key, "true or false", value);
    return value->get<bool>();
  }
  // Missing is as good.
  void Expect(const char* key, const char* wanted) const {
    if (Text(key, wanted) != wanted) Fail(key, wanted, Find(key));
  }

 private:
  const json* Find(const char* key) const {
    if (object_ == nullptr) return nullptr;
    const auto found = object_->find(key);
    return found == object_->end() || found->is_null() ? nullptr : &*found;
  }
  [[noreturn]] void Fail(const char* key,
                         const std::string& expected,
                         const json* got) const {
    throw InputError(fmt::format(
        "{}: {}{}{}: expected {}, got {}",
        path_,
        name_,
        name_.empty() ? "" : ".",
        key,
        expected,
        got == nullptr ? std::string("nothing") : hardware::ShownJson(*got)));
  }

  const std::string& path_;
  std::string name_;
  const json* object_ = nullptr;
};

}  // namespace

WordPiece WordPiece::FromFolder(const std::string& folder) {
  const std::filesystem::path root(folder);
  WordPiece tokenizer;
  if (std::filesystem::exists(root / "tokenizer.json")) {
    tokenizer.ReadTokenizerJson((root / "tokenizer.json").string());
    return tokenizer;
  }
  if (!std::filesystem::exists(root / "vocab.txt")) {
    throw InputError(fmt::format(
        "{}: expected vocab.txt or tokenizer.json, got neither", folder));
  }
  const std::filesystem::path config = root / "tokenizer_config.json";
  if (std::filesystem::exists(config)) {
    const std::string path = config.string();
    const json file = ReadJsonFile(path);
    const Options options(path, file);
    tokenizer.lower_case_ = options.Flag("do_lower_case", true);
    tokenizer.strip_accents_ =
        options.Flag("strip_accents", tokenizer.lower_case_);
    tokenizer.split_chinese_ = options.Flag("tokenize_chinese_chars", true);
  }
  tokenizer.ReadVocabulary((root / "vocab.txt").string());
  return tokenizer;
}

void WordPiece::ReadVocabulary(const std::string& path) {
  const std::string file = hardware::ReadTextFile(path, "a vocabulary");
  int64_t id = 0;
  hardware::ForEachLine(file, [&](std::string_view line) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    Add(std::string(line), id++);
  });
  if (vocabulary_.empty()) {
    throw InputError(
        fmt::format("{}: expected one token a line, got none", path));
  }
  FindSpecialTokens(path);
}

void WordPiece::ReadTokenizerJson(const std::string& path) {
  const json file = ReadJsonFile(path);
  const Options model(path, "model", file);
  model.Expect("type", "WordPiece");
  for (const auto& [token, id] : model.Object("vocab").items()) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
        id.get<int64_t>() > kLargestId) {
      throw InputError(fmt::format("{}: model.vocab.{}: expected an id, got {}",
                                   path,
                                   hardware::OneLine(token),
                                   hardware::ShownJson(id)));
    }
    Add(token, id.get<int64_t>());
  }
  prefix_ = model.Text("continuing_subword_prefix", prefix_);
  longest_word_ = model.Count("max_input_chars_per_word", longest_word_);
  const Options normalizer(path, "normalizer", file);
  if (normalizer.there()) {
    normalizer.Expect("type", "BertNormalizer");
    clean_text_ = normalizer.Flag("clean_text", true);
    split_chinese_ = normalizer.Flag("handle_chinese_chars", true);
    lower_case_ = normalizer.Flag("lowercase", true);
    strip_accents_ = normalizer.Flag("strip_accents", lower_case_);
  }
  FindSpecialTokens(path);
}

void WordPiece::Add(const std::string& token, int64_t id) {
  vocabulary_[token] = id;
  size_ = std::max(size_, id + 1);
  longest_token_ = std::max(longest_token_, token.size());
}

void WordPiece::FindSpecialTokens(const std::string& path) {
  const auto require = [&](const char* token) {
    const auto found = vocabulary_.find(token);
    if (found == vocabulary_.end()) {
      throw InputError(
          fmt::format("{}: expected a token {}, got none", path, token));
    }
    return found->second;
  };
  unknown_ = require("[UNK]");
  classify_ = require("[CLS]");
  separate_ = require("[SEP]");
  for (const char* token : {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"}) {
    const auto found = vocabulary_.find(token);
    if (found != vocabulary_.end()) special_.push_back(*found);
  }
}

std::vector<std::u32string> WordPiece::Words(std::string_view text) const {
  std::u32string points;
  for (const char32_t c : FromUtf8(text)) {
    if (clean_text_ && IsRemoved(c)) continue;
    if (split_chinese_ && IsChinese(c)) {
      points += {U' ', c, U' '};
    } else {
      points.push_back(clean_text_ && IsSpace(c) ? U' ' : c);
    }
  }
  if (strip_accents_) points = WithoutAccents(points);
  std::vector<std::u32string> words(1);
  const auto add = [&](char32_t c) {
    if (IsSpace(c)) {
      words.emplace_back();
    } else if (IsPunctuation(c)) {
      words.emplace_back(1, c);
      words.emplace_back();
    } else {
      words.back().push_back(c);
    }
  };
  for (const char32_t c : points) {
    if (lower_case_ && c == kDottedCapitalI) {
      add(U'i');
      add(kDotAbove);
    } else {
      add(lower_case_
              ? static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)))
              : c);
    }
  }
  words.erase(
      std::remove_if(words.begin(),
                     words.end(),
                     [](const std::u32string& word) { return word.empty(); }),
      words.end());
  return words;
}

void WordPiece::AppendPieces(const std::u32string& word,
                             std::vector<int64_t>& ids) const {
  if (word.size() > longest_word_) {
    ids.push_back(unknown_);
    return;
  }
  std::vector<int64_t> pieces;
  for (size_t start = 0; start < word.size();) {
    // A token has no more code points than bytes.
    size_t end = std::min(word.size(), start + longest_token_);
    auto found = vocabulary_.end();
    for (; end > start; --end) {
      std::string piece = start > 0 ? prefix_ : "";
      piece += ToUtf8(std::u32string_view(word).substr(start, end - start));
      found = vocabulary_.find(piece);
      if (found != vocabulary_.end()) break;
    }
    if (found == vocabulary_.end()) {
      ids.push_back(unknown_);
      return;
    }
    pieces.push_back(found->second);
    start = end;
  }
  ids.insert(ids.end(), pieces.begin(), pieces.end());
}

std::vector<int64_t> WordPiece::Tokenize(std::string_view text) const {
  std::vector<int64_t> ids;
  while (!text.empty()) {
    size_t at = std::string_view::npos;
    const std::pair<std::string, int64_t>* next = nullptr;
    for (const auto& token : special_) {
      const size_t found = text.find(token.first);
      if (found < at) {
        at = found;
        next = &token;
      }
    }
    for (const std::u32string& word : Words(text.substr(0, at))) {
      AppendPieces(word, ids);
    }
    if (next == nullptr) break;
    ids.push_back(next->second);
    text.remove_prefix(at + next->first.size());
  }
  return ids;
}

std::vector<int64_t> WordPiece::Encode(std::string_view text,
                                       int64_t longest) const {
  std::vector<int64_t> ids = Tokenize(text);
  const auto room = static_cast<size_t>(std::max<int64_t>(longest - 2, 0));
  if (ids.size() > room) ids.resize(room);
  ids.insert(ids.begin(), classify_);
  ids.push_back(separate_);
  return ids;
}

}  // namespace trainfare::trainer
