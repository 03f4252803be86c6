#pragma once

// BERT's tokenizer: cleaning, accent stripping, splitting at spaces and
// punctuation, then greedy longest-match WordPiece (Devlin et al. 2019). Gives
// the ids of Hugging Face's `tokenizers`; tests/trainer compares them.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trainfare::trainer {

class WordPiece {
 public:
  // Reads `tokenizer.json`, else `vocab.txt` (with `tokenizer_config.json`
  // where it stands beside). Throws InputError.
  static WordPiece FromFolder(const std::string& folder);

  // Ids of one UTF-8 text, without [CLS] and [SEP].
  std::vector<int64_t> Tokenize(std::string_view text) const;
  // [CLS] text [SEP], the text cut so that all fits in `longest` tokens.
  std::vector<int64_t> Encode(std::string_view text, int64_t longest) const;

  // One more than the largest id, whether or not ids leave some out.
  int64_t size() const { return size_; }

 private:
  void ReadVocabulary(const std::string& path);
  void ReadTokenizerJson(const std::string& path);
  void Add(const std::string& token, int64_t id);
  void FindSpecialTokens(const std::string& path);
  // Words of a text without special tokens, as Unicode code points.
  std::vector<std::u32string> Words(std::string_view text) const;
  void AppendPieces(const std::u32string& word,
                    std::vector<int64_t>& ids) const;

  std::unordered_map<std::string, int64_t> vocabulary_;
  int64_t size_ = 0;
  size_t longest_token_ = 0;  // bytes
  // Tokens that a text may spell out, such as [MASK]; never split.
  std::vector<std::pair<std::string, int64_t>> special_;
  bool clean_text_ = true;
  bool split_chinese_ = true;
  bool strip_accents_ = true;
  bool lower_case_ = true;
  std::string prefix_ = "##";  // of a piece that continues a word
  size_t longest_word_ = 100;  // code points; longer words are unknown
  int64_t unknown_ = 0;
  int64_t classify_ = 0;
  int64_t separate_ = 0;
};

}  // namespace trainfare::trainer
