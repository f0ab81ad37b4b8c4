#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/compiler/diagnostic.h"

// The policy language as text: what a file says, before any name in it is looked up.
//
//   file  = "policy" NAME NL "default kill-process" NL "arch native" NL *("use fragments/" NAME NL)
//   1*stage frag  = "fragment" NAME NL 1*rule stage = "stage" ("boot" / "run") NL 1*rule rule  =
//   "allow" calls [cond] why / "rare" calls [cond] why "test" TESTNAME / "errno" ERRNO calls why
//   cond  = "if" test *("and" test)
//   test  = ARG ("==" / "!=") VAL / ARG "in" VAL *("|" VAL) / ARG ("has-only" / "has-all") FLAGS
//         / ARG "masked" CONST "in" VAL *("|" VAL)
//
// Printable ASCII, lines end in LF, '#' starts a comment, at most 120 columns and 80 rule lines a
// file.
namespace cordon::policy::compiler {

constexpr unsigned MAX_COLUMNS = 120;
constexpr unsigned MAX_RULE_LINES = 80;
constexpr unsigned MIN_BECAUSE = 8;
constexpr unsigned MAX_BECAUSE = 100;

struct Word {
  std::string text;
  Place place;
};

enum class Operator { EQUAL, NOT_EQUAL, IN, HAS_ONLY, HAS_ALL, MASKED_IN };

struct Test {
  Word argument;
  Operator op = Operator::EQUAL;
  Word mask;                 // MASKED_IN only
  std::vector<Word> values;  // at least one; "0" alone stands for no flag
};

enum class Verb { ALLOW, RARE, ERRNO };

struct Rule {
  Verb verb = Verb::ALLOW;
  Word errorName;  // ERRNO only
  std::vector<Word> calls;
  std::vector<Test> tests;
  std::string because;
  Word testName;  // RARE only
  Place place;
};

struct Stage {
  Word name;
  std::vector<Rule> rules;
};

struct PolicyText {
  Word name;
  std::vector<Word> uses;  // without "fragments/"
  std::vector<Stage> stages;
};

struct FragmentText {
  Word name;
  std::vector<Rule> rules;
};

// Reads one file's text. Goes on after a fault in a line, so that one run names all of them; what
// is returned is complete only if nothing was added to `faults`. `stem` is the file's name without
// ".policy".
PolicyText parsePolicy(std::string_view text, const std::string& file, std::string_view stem,
                       Diagnostics& faults);
FragmentText parseFragment(std::string_view text, const std::string& file, std::string_view stem,
                           Diagnostics& faults);

// An expanded file: "policy NAME / stage STAGE[ / with fragments/sanitizers]" headers, each
// followed by rules without reasons. The stages come in the file's order.
PolicyText parseExpanded(std::string_view text, const std::string& file, Diagnostics& faults);

}  // namespace cordon::policy::compiler
