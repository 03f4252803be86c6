// doctest's main, and what doctest lets pass: a case that runs asserts
// something; one that cannot run here is skipped (`* doctest::skip(..)`), and
// where nothing else is left of what was asked, that is what CTest hears.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kSkipped = 77;  // SKIP_RETURN_CODE in tests/CMakeLists.txt

struct Outcome {
  bool ran = false;      // cases, which --count and the like do not
  unsigned asked = 0;    // cases that the filters let through
  unsigned skipped = 0;  // cases that cannot run here, asked for or not
  unsigned empty = 0;    // cases that asserted nothing
};
// doctest makes the listener that fills it, and deletes it.
Outcome outcome;

class Listener : public doctest::IReporter {
 public:
  explicit Listener(const doctest::ContextOptions&) {}

  void test_run_end(const doctest::TestRunStats& stats) override {
    outcome.ran = true;
    outcome.asked = stats.numTestCasesPassingFilters;
  }
  void test_case_start(const doctest::TestCaseData& test) override {
    case_ = &test;
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (stats.numAssertsCurrentTest > 0 || stats.failure_flags != 0) return;
    ++outcome.empty;
    std::fprintf(stderr,
                 "%s:%u: \"%s\" asserts nothing; what cannot run here is "
                 "skipped by doctest::skip\n",
                 case_->m_file.c_str(),
                 case_->m_line,
                 case_->m_name);
  }
  void test_case_skipped(const doctest::TestCaseData& test) override {
    if (test.m_skip) ++outcome.skipped;
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}

 private:
  const doctest::TestCaseData* case_ = nullptr;
};

REGISTER_LISTENER("outcome", 1, Listener);

}  // namespace

int main(int argc, char** argv) {
  const int result = doctest::Context(argc, argv).run();
  if (result != 0 || !outcome.ran) return result;
  if (outcome.empty > 0) return EXIT_FAILURE;
  if (outcome.asked > 0) return EXIT_SUCCESS;
  if (outcome.skipped > 0) {
    std::fputs("skipped: what these cases need is not here\n", stderr);
    return kSkipped;
  }
  std::fputs("no case is what was asked for\n", stderr);
  return EXIT_FAILURE;
}
