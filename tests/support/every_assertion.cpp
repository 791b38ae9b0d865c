// A reporter for doctest that writes every assertion, whether it passes or fails, and with
// --success what it came to. ./learn test NN --record reads from it which checks call a function.
// A line is
//
//     check NAME                      a test case begins
//     LINE PASSED what it came to     an assertion of it; of each line the first eight
//     threw WHAT                      the test case ended in an exception
//     calls NAME NAME                 the functions that it called, of a part that notes its calls
//     took SECONDS                    the test case ended
#include <doctest/doctest.h>

#include <map>
#include <mutex>
#include <ostream>
#include <set>
#include <string>

#include "support/wrong_version.hpp"

static std::set<std::string_view> called;
static std::mutex noting;

void t2t::note_call(const char* function) {
  const std::lock_guard lock(noting);
  called.insert(function);
}

namespace {

class EveryAssertion : public doctest::IReporter {
 public:
  explicit EveryAssertion(const doctest::ContextOptions& options) : out_(*options.cout) {
    out_ << std::nounitbuf;
  }

  void test_case_start(const doctest::TestCaseData& check) override {
    out_ << "check " << check.m_name << std::endl;  // a crash in it costs its assertions alone
    seen_.clear(), called.clear();
  }
  void log_assert(const doctest::AssertData& assertion) override {
    if (++seen_[assertion.m_line] > 8) return;
    std::string text = assertion.m_threw ? "threw" : assertion.m_decomp.c_str();
    for (char& letter : text)
      if (letter == '\n') letter = ' ';
    out_ << assertion.m_line << ' ' << !assertion.m_failed << ' ' << text.substr(0, 300) << '\n';
  }
  void log_message(const doctest::MessageData& message) override {
    if (++seen_[message.m_line] > 8) return;
    out_ << message.m_line << " 0 " << message.m_string.c_str() << '\n';
  }
  void test_case_exception(const doctest::TestCaseException& thrown) override {
    out_ << "threw " << thrown.error_string.c_str() << '\n';
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override { out_ << "end\n"; }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (!called.empty()) out_ << "calls";
    for (const std::string_view function : called) out_ << ' ' << function;
    if (!called.empty()) out_ << '\n';
    out_ << "took " << stats.seconds << '\n';
  }
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  std::ostream& out_;
  std::map<int, int> seen_;
};

}  // namespace

DOCTEST_REGISTER_REPORTER("every_assertion", 0, EveryAssertion);
