#pragma once

// The files that a page has inside it, embedded into the program by its build
// (page/embed.cmake).

#include <string_view>

namespace trainfare::scenarios {

class EmbeddedFile {
 public:
  EmbeddedFile(const char* begin, const char* end, const char* digest)
      : begin_(begin), end_(end), digest_(digest) {}

  std::string_view text() const { return {begin_, end_}; }
  // As a Content-Security-Policy names it: "sha256-...".
  std::string_view digest() const { return digest_; }

 private:
  const char* begin_;
  const char* end_;
  const char* digest_;
};

EmbeddedFile ChartLibrary();  // Chart.js
EmbeddedFile ChartLicence();  // its terms
EmbeddedFile PageScript();
EmbeddedFile PageStyle();

}  // namespace trainfare::scenarios
