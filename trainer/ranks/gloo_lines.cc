#include "trainer/ranks/gloo_lines.h"

#include <ostream>
#include <streambuf>
#include <string_view>

namespace trainfare::trainer {
namespace {

// "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] ERROR ...", which
// comes in one piece (gloo/common/logging.h).
bool IsOfGloo(std::string_view text) {
  const size_t end = text.find("] ");
  return text.starts_with('[') && end != std::string_view::npos &&
         text.substr(0, end).find("/gloo/") != std::string_view::npos;
}

class WithoutGloo : public std::streambuf {
 public:
  explicit WithoutGloo(std::streambuf& to) : to_(to) {}

 protected:
  int_type overflow(int_type c) override {
    return traits_type::eq_int_type(c, traits_type::eof())
               ? traits_type::not_eof(c)
               : to_.sputc(traits_type::to_char_type(c));
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    return IsOfGloo({text, static_cast<size_t>(size)}) ? size
                                                       : to_.sputn(text, size);
  }
  int sync() override { return to_.pubsync(); }

 private:
  std::streambuf& to_;
};

}  // namespace

void DropGlooLines(std::ostream& stream) {
  // Never freed: threads of Gloo's may write until the process is over.
  stream.rdbuf(new WithoutGloo(*stream.rdbuf()));
}

}  // namespace trainfare::trainer
