#include "hardware/files/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ostream>
#include <utility>

#include "hardware/files/foreign_text.h"
#include "hardware/files/unit_text.h"

namespace trainfare::hardware {
namespace {

using Clock = std::chrono::steady_clock;

// What takes less needs no line.
constexpr double kShownFromSeconds = 2.0;
constexpr std::chrono::milliseconds kBetweenDrawings(200);

// "12 s", "3 min 20 s": whole seconds, no digits that jump about.
std::string LeftWords(double seconds) {
  const double whole = std::max(std::ceil(seconds), 1.0);
  return whole < 60.0 ? fmt::format("{:.0f} s", whole)
                      : FormatTime(model::Second(whole));
}

}  // namespace

std::string ProgressText(const ProgressSoFar& so_far,
                         const std::string& what,
                         const std::string& note) {
  const double done = std::min(so_far.done, so_far.count);
  std::string text =
      fmt::format("{:.0f} of {:.0f} {}", done, so_far.count, what);
  const double here = done - so_far.before;
  if (done >= so_far.count) {
    text += ", finishing";
  } else if (here > 0) {
    const double each = model::ToSeconds(so_far.elapsed) / here;
    text +=
        fmt::format(", about {} left", LeftWords(each * (so_far.count - done)));
  }
  return note.empty() ? text : text + ": " + note;
}

ProgressLine::ProgressLine(std::ostream& log, std::optional<size_t> width)
    : log_(log), width_(width) {}

ProgressLine::~ProgressLine() { End(); }

void ProgressLine::Begin(double count, const std::string& what, double done) {
  if (!width_) return;
  const std::lock_guard lock(mutex_);
  Erase();
  going_on_ = true;
  so_far_ = {done, count, done, {}};
  what_ = what;
  note_.clear();
  begin_ = Clock::now();
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }
}

void ProgressLine::Add(double more) {
  const std::lock_guard lock(mutex_);
  so_far_.done += more;
}

void ProgressLine::Set(double done, const std::string& note) {
  const std::lock_guard lock(mutex_);
  so_far_.done = done;
  note_ = note;
}

void ProgressLine::End() {
  const std::lock_guard lock(mutex_);
  going_on_ = false;
  Erase();
}

void ProgressLine::Beside(const std::function<void()>& write) {
  const std::lock_guard lock(mutex_);
  Erase();
  write();
}

void ProgressLine::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (going_on_) {
      so_far_.elapsed = model::Second(
          std::chrono::duration<double>(Clock::now() - begin_).count());
      if (model::ToSeconds(so_far_.elapsed) >= kShownFromSeconds) Draw();
    }
    changed_.wait_for(lock, stop, kBetweenDrawings, [] { return false; });
  }
}

void ProgressLine::Draw() {
  const std::string text =
      OneLine(ProgressText(so_far_, what_, note_), std::string::npos);
  std::string line(CutToWidth(text, *width_ - 1));
  if (line == drawn_) return;
  const size_t width = DisplayWidth(line);
  const size_t before = DisplayWidth(drawn_);
  log_ << '\r' << line << std::string(before > width ? before - width : 0, ' ')
       << std::flush;
  drawn_ = std::move(line);
}

void ProgressLine::Erase() {
  if (drawn_.empty()) return;
  log_ << '\r' << std::string(DisplayWidth(drawn_), ' ') << '\r' << std::flush;
  drawn_.clear();
}

}  // namespace trainfare::hardware
