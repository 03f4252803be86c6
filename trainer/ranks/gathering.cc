#include "trainer/ranks/gathering.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "trainer/ranks/sockets.h"

namespace trainfare::trainer {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kOnOneHost = std::chrono::seconds(20);
constexpr milliseconds kOverHosts = std::chrono::seconds(120);

}  // namespace

milliseconds ProcessAge() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // Behind the name, which may hold anything, starttime is the 20th field
  // (proc(5)): clock ticks since the host was started.
  std::istringstream fields(
      text.substr(std::min(text.rfind(')'), text.size())));
  std::string skipped;
  for (int i = 0; i < 20; ++i) fields >> skipped;
  int64_t ticks = 0;
  timespec now{};
  const int64_t rate = ::sysconf(_SC_CLK_TCK);
  if (!(fields >> ticks) || rate <= 0 ||
      ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) {
    return milliseconds(0);
  }
  return std::max(milliseconds(0),
                  milliseconds(int64_t{now.tv_sec} * 1000 +
                               now.tv_nsec / 1'000'000 - ticks * 1000 / rate));
}

Gathering::Gathering(const RankPlace& place,
                     std::optional<milliseconds> within,
                     milliseconds age)
    : whole_(within.value_or(AllHere(place) ? kOnOneHost : kOverHosts)),
      begin_(Clock::now()) {
  if (!within && AllHere(place)) begin_ -= age;
}

milliseconds Gathering::left() const {
  const auto passed =
      std::chrono::duration_cast<milliseconds>(Clock::now() - begin_);
  return std::max(whole_ - passed, whole_ / 2);
}

}  // namespace trainfare::trainer
