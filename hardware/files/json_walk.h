#pragma once

// Where the keys and values of a JSON text stand.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/files/json_place.h"

namespace trainfare::hardware {

// The keys and values of a text one after another, each with its place, of
// which the library says nothing. The text is JSON, or was up to where the
// library stopped: nothing is checked again.
class JsonWalk {
 public:
  explicit JsonWalk(std::string_view text) : text_(text) {}

  // Goes to the next key or value; false: there is none.
  bool Next() {
    // Byte order marks, too, which the library skips.
    constexpr std::string_view kBetween = " \t\r\n,:\xef\xbb\xbf";
    at_ = text_.find_first_not_of(kBetween, at_ + token_.size());
    while (at_ < text_.size() && (text_[at_] == '}' || text_[at_] == ']')) {
      if (!open_.empty()) open_.pop_back();
      at_ = text_.find_first_not_of(kBetween, at_ + 1);
    }
    at_ = std::min(at_, text_.size());
    if (at_ == text_.size()) return false;
    token_ = text_.substr(at_, Size());
    is_key_ = false;
    if (!open_.empty()) EnterPath();
    if (token_ == "{" || token_ == "[") {
      open_.push_back({token_ == "{", path_.size()});
    }
    return true;
  }

  bool is_key() const { return is_key_; }
  std::string_view token() const { return token_; }
  // Lists and objects that are open, this one among them.
  size_t depth() const { return open_.size(); }
  // Of the value, or of a key's.
  const std::string& path() const { return path_; }
  JsonPlace place() const { return PlaceOf(text_, at_); }

  static JsonPlace PlaceOf(std::string_view text, size_t at) {
    const std::string_view before = text.substr(0, at);
    const size_t start = before.rfind('\n') + 1;
    return {
        1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
        static_cast<int>(at - start) + 1};
  }

 private:
  struct Open {
    bool is_object = false;
    size_t path_size = 0;  // of its own path
    size_t items = 0;      // begun so far; of an object keys and values
  };

  // Of the token that begins here.
  size_t Size() const {
    const char first = text_[at_];
    if (first == '{' || first == '[') return 1;
    if (first != '"') {
      const size_t end = text_.find_first_of(" \t\r\n,:{}[]\"", at_);
      return std::min(end, text_.size()) - at_;
    }
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"') {
      end += text_[end] == '\\' ? size_t{2} : size_t{1};
    }
    return std::min(end + 1, text_.size()) - at_;
  }

  void EnterPath() {
    Open& within = open_.back();
    const size_t item = within.items++;
    is_key_ = within.is_object && item % 2 == 0;
    if (within.is_object && !is_key_) return;  // its key's path
    path_.resize(within.path_size);
    if (!within.is_object) {
      path_ += fmt::format("[{}]", item);
      return;
    }
    if (!path_.empty()) path_ += '.';
    const nlohmann::json key =
        nlohmann::json::parse(token_, nullptr, /*allow_exceptions=*/false);
    if (key.is_string()) path_ += key.get_ref<const std::string&>();
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string_view token_;
  bool is_key_ = false;
  std::vector<Open> open_;
  std::string path_;
};

}  // namespace trainfare::hardware
