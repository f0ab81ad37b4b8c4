#include "policy/compiler/language.h"

#include <algorithm>
#include <array>
#include <optional>

namespace cordon::policy::compiler {
namespace {

enum class Kind { WORD, STRING, SYMBOL, END };

struct Token {
  Kind kind = Kind::END;
  std::string text;
  Place place;
};

struct Line {
  std::vector<Token> tokens;  // the last one is END
};

bool isWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == '/';
}

// One line into tokens. False, with a fault, if a character has no place in the language.
bool tokenize(std::string_view text, const std::string& file, unsigned line,
              std::vector<Token>& tokens, Diagnostics& faults) {
  static constexpr std::array<std::string_view, 10> SYMBOLS = {"==", "!=", "<=", ">=", "<",
                                                               ">",  ",",  "|",  "=",  "/"};
  std::size_t at = 0;
  auto place = [&] { return Place{file, line, static_cast<unsigned>(at + 1)}; };
  while (at < text.size()) {
    const char c = text[at];
    if (c == ' ') {
      ++at;
      continue;
    }
    if (c == '#') {
      break;
    }
    Token token{Kind::SYMBOL, {}, place()};
    if (c == '"') {
      const auto end = text.find('"', at + 1);
      if (end == std::string_view::npos) {
        faults.push_back(
            {Fault::SYNTAX, place(), "a reason without its closing quote", "close it with '\"'"});
        return false;
      }
      token.kind = Kind::STRING;
      token.text = text.substr(at + 1, end - at - 1);
      at = end + 1;
    } else if (isWordCharacter(c) && c != '/') {
      const auto begin = at;
      while (at < text.size() && isWordCharacter(text[at])) {
        ++at;
      }
      token.kind = Kind::WORD;
      token.text = text.substr(begin, at - begin);
    } else {
      const auto rest = text.substr(at);
      const auto* symbol = std::find_if(SYMBOLS.begin(), SYMBOLS.end(), [&](auto candidate) {
        return rest.starts_with(candidate);
      });
      if (symbol == SYMBOLS.end()) {
        faults.push_back({Fault::SYNTAX, place(), std::string("'") + c + "' has no meaning here",
                          "a rule is: allow CALL[, CALL] [if TEST [and TEST]] because \"REASON\""});
        return false;
      }
      token.text = *symbol;
      at += symbol->size();
    }
    tokens.push_back(std::move(token));
  }
  tokens.push_back({Kind::END, {}, place()});
  return true;
}

std::vector<Line> readLines(std::string_view text, const std::string& file, Diagnostics& faults) {
  std::vector<Line> lines;
  unsigned number = 0;
  if (!text.empty() && text.back() != '\n') {
    faults.push_back({Fault::SYNTAX,
                      {file, 0, 0},
                      "the last line has no line feed",
                      "end the file with a line feed"});
  }
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const auto bad =
        std::find_if(line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; });
    if (bad != line.end()) {
      faults.push_back({Fault::NON_ASCII,
                        {file, number, static_cast<unsigned>(bad - line.begin() + 1)},
                        "a character that is not printable ASCII",
                        "use spaces and ASCII only, and LF line ends"});
      continue;
    }
    if (line.size() > MAX_COLUMNS) {
      faults.push_back(
          {Fault::LINE_TOO_LONG,
           {file, number, MAX_COLUMNS + 1},
           "the line has " + std::to_string(line.size()) + " columns",
           "split the rule: at most " + std::to_string(MAX_COLUMNS) + " columns a line"});
      continue;
    }
    Line parsed;
    if (tokenize(line, file, number, parsed.tokens, faults) && parsed.tokens.size() > 1) {
      lines.push_back(std::move(parsed));
    }
  }
  return lines;
}

// Reads one line's tokens. The first fault ends the line: what follows it would be guesswork.
class Cursor {
 public:
  Cursor(const Line& source, Diagnostics& sink) : line(source), faults(sink) {}

  bool take(std::string_view text) {
    if (peek().kind == Kind::STRING || peek().kind == Kind::END || peek().text != text) {
      return false;
    }
    ++at;
    return true;
  }

  std::optional<Word> word(const char* what, const char* remedy) {
    if (peek().kind != Kind::WORD) {
      fail(Fault::SYNTAX, std::string("expected ") + what, remedy);
      return std::nullopt;
    }
    const auto& token = line.tokens[at++];
    return Word{token.text, token.place};
  }

  std::nullopt_t fail(Fault fault, std::string message, std::string remedy) {
    if (!failed) {
      faults.push_back({fault, peek().place, std::move(message), std::move(remedy)});
    }
    failed = true;
    return std::nullopt;
  }

  const Token& peek() const { return line.tokens[at]; }
  const Token& first() const { return line.tokens.front(); }
  void skip() { ++at; }
  bool atEnd() const { return peek().kind == Kind::END; }

  bool expectEnd() {
    if (!atEnd()) {
      fail(Fault::SYNTAX, "unexpected '" + peek().text + "'",
           "nothing may follow here; one rule a line");
    }
    return !failed;
  }

 private:
  const Line& line;
  Diagnostics& faults;
  std::size_t at = 0;
  bool failed = false;
};

bool parseValues(Cursor& cursor, std::vector<Word>& values) {
  do {
    auto value = cursor.word("a constant", "name a constant; several are joined by '|'");
    if (!value) {
      return false;
    }
    values.push_back(std::move(*value));
  } while (cursor.take("|"));
  return true;
}

std::optional<Test> parseTest(Cursor& cursor) {
  auto argument = cursor.word("an argument's name",
                              "a test is: ARGUMENT == CONSTANT (or !=, in, has-only, has-all)");
  if (!argument) {
    return std::nullopt;
  }
  Test test;
  test.argument = std::move(*argument);
  const auto& op = cursor.peek();
  if (op.text == "<" || op.text == ">" || op.text == "<=" || op.text == ">=") {
    return cursor.fail(Fault::ORDERING_TEST, "'" + op.text + "' is not in the language",
                       "list the values with 'in', or bits with 'has-only': ordering of signed "
                       "arguments is unsound");
  }
  if (cursor.take("==") || cursor.take("!=")) {
    test.op = op.text == "==" ? Operator::EQUAL : Operator::NOT_EQUAL;
    auto value = cursor.word("a constant", "compare with one named constant");
    if (!value) {
      return std::nullopt;
    }
    test.values.push_back(std::move(*value));
    return test;
  }
  if (cursor.take("in")) {
    test.op = Operator::IN;
  } else if (cursor.take("has-only")) {
    test.op = Operator::HAS_ONLY;
  } else if (cursor.take("has-all")) {
    test.op = Operator::HAS_ALL;
  } else if (cursor.take("masked")) {
    test.op = Operator::MASKED_IN;
    auto mask = cursor.word("a mask's name", "write: ARGUMENT masked MASK in CONSTANT|CONSTANT");
    if (!mask) {
      return std::nullopt;
    }
    test.mask = std::move(*mask);
    if (!cursor.take("in")) {
      return cursor.fail(Fault::SYNTAX, "expected 'in' after the mask",
                         "write: ARGUMENT masked MASK in CONSTANT");
    }
  } else {
    return cursor.fail(Fault::SYNTAX, "unknown test '" + op.text + "'",
                       "use ==, !=, in, has-only, has-all or masked MASK in");
  }
  if (!parseValues(cursor, test.values)) {
    return std::nullopt;
  }
  return test;
}

enum class Reasons { REQUIRED, ABSENT };

bool parseReason(Cursor& cursor, Rule& rule) {
  if (!cursor.take("because")) {
    cursor.fail(Fault::MISSING_BECAUSE,
                cursor.atEnd() ? "the rule gives no reason" : "expected 'because'",
                "end the rule with: because \"why this process needs it\"");
    return false;
  }
  if (cursor.peek().kind != Kind::STRING) {
    cursor.fail(Fault::MISSING_BECAUSE, "the reason is not in quotes", "write: because \"REASON\"");
    return false;
  }
  rule.because = cursor.peek().text;
  if (rule.because.size() < MIN_BECAUSE || rule.because.size() > MAX_BECAUSE) {
    cursor.fail(
        Fault::BECAUSE_LENGTH,
        "the reason has " + std::to_string(rule.because.size()) + " characters",
        "give a reason of " + std::to_string(MIN_BECAUSE) + " to " + std::to_string(MAX_BECAUSE));
    return false;
  }
  cursor.skip();
  return true;
}

bool parseTestName(Cursor& cursor, Rule& rule) {
  if (!cursor.take("test")) {
    cursor.fail(Fault::MISSING_TEST_NAME, "a rare rule names no test",
                "add: test SUITE.CASE, the test that needs it");
    return false;
  }
  auto name = cursor.word("a test's name", "add: test SUITE.CASE, the test that needs it");
  if (!name) {
    return false;
  }
  rule.testName = std::move(*name);
  return true;
}

std::optional<Rule> parseRule(Cursor cursor, Reasons reasons) {
  Rule rule;
  rule.place = cursor.first().place;
  if (cursor.take("allow")) {
    rule.verb = Verb::ALLOW;
  } else if (cursor.take("rare")) {
    rule.verb = Verb::RARE;
  } else if (cursor.take("errno")) {
    rule.verb = Verb::ERRNO;
    auto name = cursor.word("ENOSYS or EACCES", "write: errno ENOSYS CALL because \"...\"");
    if (!name) {
      return std::nullopt;
    }
    rule.errorName = std::move(*name);
  } else if (cursor.peek().text == "kill" || cursor.peek().text == "kill-process" ||
             cursor.peek().text == "deny") {
    return cursor.fail(Fault::ACTION_IS_DEFAULT,
                       "'" + cursor.peek().text + "' is what happens anyway",
                       "delete the rule: every call that no rule names kills the process");
  } else {
    return cursor.fail(Fault::SYNTAX, "'" + cursor.peek().text + "' starts no rule",
                       "a rule starts with allow, rare or errno");
  }
  do {
    auto call = cursor.word("a system call", "name system calls, separated by commas");
    if (!call) {
      return std::nullopt;
    }
    rule.calls.push_back(std::move(*call));
  } while (cursor.take(","));
  if (cursor.peek().text == "if" && rule.verb == Verb::ERRNO) {
    return cursor.fail(
        Fault::ERRNO_CONDITION, "an errno rule has no condition",
        "drop the condition, or allow the arguments that are needed and leave the rest to die");
  }
  if (cursor.take("if")) {
    do {
      auto test = parseTest(cursor);
      if (!test) {
        return std::nullopt;
      }
      rule.tests.push_back(std::move(*test));
    } while (cursor.take("and"));
  }
  if (reasons == Reasons::REQUIRED) {
    if (!parseReason(cursor, rule) || (rule.verb == Verb::RARE && !parseTestName(cursor, rule))) {
      return std::nullopt;
    }
  }
  if (!cursor.expectEnd()) {
    return std::nullopt;
  }
  return rule;
}

void countRules(std::size_t count, const Place& last, Diagnostics& faults) {
  if (count > MAX_RULE_LINES) {
    faults.push_back(
        {Fault::TOO_MANY_RULES, last, std::to_string(count) + " rule lines",
         "at most " + std::to_string(MAX_RULE_LINES) +
             " a file: a person must be able to read it; split the process, not the file"});
  }
}

Word parseHeader(Cursor& cursor, const char* keyword, std::string_view stem) {
  if (!cursor.take(keyword)) {
    cursor.fail(Fault::SYNTAX, "the first line is not '" + std::string(keyword) + " NAME'",
                "start the file with: " + std::string(keyword) + ' ' + std::string(stem));
    return {};
  }
  if (cursor.peek().kind == Kind::WORD && cursor.peek().text != stem) {
    cursor.fail(Fault::NAME_MISMATCH,
                "the name is '" + cursor.peek().text + "' in a file named '" + std::string(stem) +
                    ".policy'",
                "name and file must agree: write " + std::string(stem));
    return {};
  }
  auto name = cursor.word("a name", "write the file's stem");
  cursor.expectEnd();
  return name ? *name : Word{};
}

bool expectLine(const std::vector<Line>& lines, std::size_t& at, const char* first,
                const char* second, const std::string& file, Diagnostics& faults) {
  const auto wanted = std::string(first) + ' ' + second;
  if (at >= lines.size()) {
    faults.push_back({Fault::SYNTAX,
                      {file, 0, 0},
                      "the file ends before '" + wanted + "'",
                      "add the line: " + wanted});
    return false;
  }
  Cursor cursor(lines[at], faults);
  if (!cursor.take(first) || !cursor.take(second)) {
    cursor.fail(Fault::SYNTAX, "expected '" + wanted + "'",
                "policies have no other choice; add the line: " + wanted);
    return false;
  }
  ++at;
  return cursor.expectEnd();
}

constexpr std::string_view FRAGMENT_FOLDER = "fragments/";

void parseUses(const std::vector<Line>& lines, std::size_t& at, PolicyText& policy,
               Diagnostics& faults) {
  for (; at < lines.size(); ++at) {
    Cursor cursor(lines[at], faults);
    if (!cursor.take("use")) {
      return;
    }
    const auto place = cursor.peek().place;
    auto name = cursor.word("a fragment", "write: use fragments/NAME");
    if (!name || !cursor.expectEnd()) {
      continue;
    }
    if (!name->text.starts_with(FRAGMENT_FOLDER)) {
      faults.push_back({Fault::UNKNOWN_FRAGMENT, place, "'" + name->text + "' is not in fragments/",
                        "write: use fragments/NAME"});
      continue;
    }
    policy.uses.push_back({name->text.substr(FRAGMENT_FOLDER.size()), place});
  }
}

void openStage(Cursor cursor, PolicyText& policy, Diagnostics& faults) {
  cursor.take("stage");
  auto name = cursor.word("boot or run", "write: stage run");
  if (!name || !cursor.expectEnd()) {
    return;
  }
  const bool isBoot = name->text == "boot";
  if (!isBoot && name->text != "run") {
    faults.push_back({Fault::STAGE_ORDER, name->place, "there is no stage '" + name->text + "'",
                      "stages are boot and run; a single one is run"});
  } else if (isBoot ? !policy.stages.empty()
                    : std::any_of(policy.stages.begin(), policy.stages.end(),
                                  [](const Stage& stage) { return stage.name.text == "run"; })) {
    faults.push_back({Fault::STAGE_ORDER, name->place,
                      "stage '" + name->text + "' stands in the wrong place",
                      "boot comes first, then run, each once"});
  }
  policy.stages.push_back({std::move(*name), {}});
}

void parseStages(const std::vector<Line>& lines, std::size_t at, Reasons reasons,
                 PolicyText& policy, const std::string& file, Diagnostics& faults) {
  std::size_t rules = 0;
  Place last{file, 0, 0};
  for (; at < lines.size(); ++at) {
    Cursor cursor(lines[at], faults);
    if (cursor.peek().text == "stage") {
      openStage(cursor, policy, faults);
      continue;
    }
    if (cursor.peek().text == "use") {
      cursor.fail(Fault::SYNTAX, "'use' stands after the first stage",
                  "move it above: fragments join every stage");
      continue;
    }
    if (policy.stages.empty()) {
      cursor.fail(Fault::STAGE_ORDER, "a rule stands before the first stage",
                  "write 'stage run' above it");
      policy.stages.push_back({{"run", lines[at].tokens.front().place}, {}});
    }
    ++rules;
    last = lines[at].tokens.front().place;
    if (auto rule = parseRule(cursor, reasons)) {
      policy.stages.back().rules.push_back(std::move(*rule));
    }
  }
  countRules(rules, last, faults);
}

void checkStages(const PolicyText& policy, const std::string& file, Diagnostics& faults) {
  if (policy.stages.empty() || policy.stages.back().name.text != "run") {
    faults.push_back(
        {Fault::STAGE_ORDER, {file, 0, 0}, "the policy has no stage 'run'", "add: stage run"});
  }
  for (const auto& stage : policy.stages) {
    if (stage.rules.empty()) {
      faults.push_back({Fault::SYNTAX, stage.name.place,
                        "stage '" + stage.name.text + "' has no rule",
                        "add a rule, or remove the stage"});
    }
  }
}

}  // namespace

PolicyText parsePolicy(std::string_view text, const std::string& file, std::string_view stem,
                       Diagnostics& faults) {
  const auto lines = readLines(text, file, faults);
  PolicyText policy;
  if (lines.empty()) {
    faults.push_back({Fault::SYNTAX,
                      {file, 0, 0},
                      "the file is empty",
                      "start with: policy " + std::string(stem)});
    return policy;
  }
  Cursor header(lines[0], faults);
  policy.name = parseHeader(header, "policy", stem);
  std::size_t at = 1;
  if (!expectLine(lines, at, "default", "kill-process", file, faults) ||
      !expectLine(lines, at, "arch", "native", file, faults)) {
    return policy;
  }
  parseUses(lines, at, policy, faults);
  parseStages(lines, at, Reasons::REQUIRED, policy, file, faults);
  if (faults.empty()) {
    checkStages(policy, file, faults);
  }
  return policy;
}

FragmentText parseFragment(std::string_view text, const std::string& file, std::string_view stem,
                           Diagnostics& faults) {
  const auto lines = readLines(text, file, faults);
  FragmentText fragment;
  if (lines.empty()) {
    faults.push_back({Fault::SYNTAX,
                      {file, 0, 0},
                      "the file is empty",
                      "start with: fragment " + std::string(stem)});
    return fragment;
  }
  Cursor header(lines[0], faults);
  fragment.name = parseHeader(header, "fragment", stem);
  for (std::size_t at = 1; at < lines.size(); ++at) {
    Cursor cursor(lines[at], faults);
    const auto& word = cursor.peek().text;
    if (word == "use") {
      cursor.fail(Fault::FRAGMENT_USES, "a fragment uses another",
                  "use both in the policy: there is one level only");
    } else if (word == "stage" || word == "default" || word == "arch") {
      cursor.fail(Fault::FRAGMENT_HAS_STAGE, "a fragment has no '" + word + "'",
                  "only a policy has it");
    } else if (auto rule = parseRule(cursor, Reasons::REQUIRED)) {
      fragment.rules.push_back(std::move(*rule));
    }
  }
  countRules(lines.size() - 1, lines.back().tokens.front().place, faults);
  if (lines.size() == 1) {
    faults.push_back(
        {Fault::SYNTAX, fragment.name.place, "the fragment has no rule", "add a rule"});
  }
  return fragment;
}

PolicyText parseExpanded(std::string_view text, const std::string& file, Diagnostics& faults) {
  PolicyText policy;
  for (const auto& line : readLines(text, file, faults)) {
    Cursor cursor(line, faults);
    if (cursor.take("policy")) {
      auto name = cursor.word("a name", "write: policy NAME / stage STAGE");
      if (!name || !cursor.take("/") || !cursor.take("stage")) {
        cursor.fail(Fault::SYNTAX, "not a header", "write: policy NAME / stage STAGE");
        continue;
      }
      policy.name = std::move(*name);
      auto stage = cursor.word("boot or run", "write: policy NAME / stage STAGE");
      if (!stage) {
        continue;
      }
      policy.stages.push_back({std::move(*stage), {}});
      if (cursor.take("/")) {
        cursor.take("with");
        if (auto with = cursor.word("a fragment", "write: with fragments/NAME")) {
          policy.uses.push_back(std::move(*with));
        }
      }
      cursor.expectEnd();
    } else if (policy.stages.empty()) {
      cursor.fail(Fault::SYNTAX, "a rule before the first header",
                  "write: policy NAME / stage STAGE");
    } else if (auto rule = parseRule(cursor, Reasons::ABSENT)) {
      policy.stages.back().rules.push_back(std::move(*rule));
    }
  }
  return policy;
}

}  // namespace cordon::policy::compiler
