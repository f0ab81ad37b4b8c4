#include "policy/compiler/resolve.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <set>
#include <sstream>

namespace cordon::policy::compiler {
namespace {

constexpr std::uint64_t LOWER_HALF = 0xffffffff;

bool isDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// One test's meaning: a union of (mask, value) pairs on one argument.
struct Bits {
  std::uint64_t mask = 0;
  std::uint64_t value = 0;
};

class TestResolver {
 public:
  TestResolver(const Argument& tested, const Test& source, Diagnostics& sink)
      : argument(tested),
        test(source),
        faults(sink),
        all(tested.width == 32 ? LOWER_HALF : ~std::uint64_t{0}) {}

  std::optional<std::vector<Bits>> resolve() {
    if (argument.kind == ArgumentKind::POINTER) {
      return fail(
          Fault::POINTER_ARGUMENT, test.argument, "'" + argument.name + "' is a pointer",
          "a filter cannot see what it points to: allow the call without it, or not at all");
    }
    const bool wantsBits = test.op == Operator::HAS_ONLY || test.op == Operator::HAS_ALL;
    if (wantsBits && argument.kind != ArgumentKind::FLAGS) {
      return fail(Fault::UNFIT_TEST, test.argument,
                  "'" + argument.name + "' holds a number, not flags", "test it with ==, != or in");
    }
    if (!readValues(wantsBits)) {
      return std::nullopt;
    }
    return combine();
  }

  std::string text() const {
    auto names = test.values;
    std::sort(names.begin(), names.end(),
              [](const Word& a, const Word& b) { return a.text < b.text; });
    std::string list;
    for (const auto& name : names) {
      list += (list.empty() ? "" : "|") + name.text;
    }
    switch (test.op) {
      case Operator::EQUAL:
        return argument.name + " == " + list;
      case Operator::NOT_EQUAL:
        return argument.name + " != " + list;
      case Operator::IN:
        return argument.name + " in " + list;
      case Operator::HAS_ONLY:
        return argument.name + " has-only " + list;
      case Operator::HAS_ALL:
        return argument.name + " has-all " + list;
      case Operator::MASKED_IN:
        return argument.name + " masked " + test.mask.text + " in " + list;
    }
    return {};
  }

 private:
  std::nullopt_t fail(Fault fault, const Word& word, std::string message, std::string remedy) {
    faults.push_back({fault, word.place, std::move(message), std::move(remedy)});
    return std::nullopt;
  }

  std::optional<std::uint64_t> readConstant(const Word& word, bool mustFit) {
    const auto found = constantValue(word.text);
    if (!found) {
      return fail(Fault::UNKNOWN_CONSTANT, word, "'" + word.text + "' is no known constant",
                  "check its spelling, or add it to policy/compiler/constants.cpp");
    }
    const auto& prefixes = argument.prefixes;
    if (mustFit && !prefixes.empty() &&
        std::none_of(prefixes.begin(), prefixes.end(),
                     [&](const auto& prefix) { return word.text.starts_with(prefix); })) {
      return fail(Fault::UNFIT_CONSTANT, word,
                  "'" + word.text + "' is no value of '" + argument.name + "'",
                  "use a constant that starts with " + prefixes.front());
    }
    const auto upper = *found & ~LOWER_HALF;
    if (argument.width == 32 && upper != 0 && upper != ~LOWER_HALF) {
      return fail(Fault::UNFIT_CONSTANT, word,
                  "'" + word.text + "' needs more bits than '" + argument.name + "' has",
                  "use a constant of 32 bits");
    }
    return *found & all;
  }

  std::optional<std::uint64_t> readNumber(const Word& word) {
    if (argument.kind == ArgumentKind::FLAGS) {
      return fail(Fault::BARE_NUMBER, word,
                  "'" + argument.name + "' is compared with the bare number " + word.text,
                  "use a named constant: a reader cannot check a number");
    }
    std::uint64_t number = 0;
    const auto parsed =
        std::from_chars(word.text.data(), word.text.data() + word.text.size(), number);
    if (parsed.ec != std::errc{} || (number & ~all) != 0 ||
        (word.text.size() > 1 && word.text[0] == '0')) {
      return fail(Fault::UNFIT_CONSTANT, word,
                  "'" + word.text + "' is no number for '" + argument.name + "'",
                  "write it in decimal, without leading zeros, within the argument's width");
    }
    return number;
  }

  bool readValues(bool wantsBits) {
    std::set<std::uint64_t> seen;
    for (const auto& word : test.values) {
      if (wantsBits && word.text == "0") {
        if (test.values.size() != 1 || test.op == Operator::HAS_ALL) {
          fail(Fault::NEVER_MATCHES, word, "'0' is no flag among others",
               "write 'has-only 0' alone, for no flag at all");
          return false;
        }
        values.push_back(0);
        continue;
      }
      const auto value = isDigits(word.text) ? readNumber(word) : readConstant(word, true);
      if (!value) {
        return false;
      }
      if (!seen.insert(*value).second) {
        fail(Fault::DUPLICATE_RULE, word,
             "'" + word.text + "' has the value of another one in the list",
             "name each value once");
        return false;
      }
      values.push_back(*value);
    }
    return true;
  }

  std::optional<std::vector<Bits>> combine() {
    std::uint64_t joined = 0;
    for (const auto value : values) {
      joined |= value;
    }
    std::vector<Bits> bits;
    switch (test.op) {
      case Operator::EQUAL:
      case Operator::IN:
        for (const auto value : values) {
          bits.push_back({all, value});
        }
        break;
      case Operator::NOT_EQUAL:
        // "Differs in some bit" as a union, one set a bit: the filter has no masked inequality.
        for (auto open = all; open != 0; open &= open - 1) {
          const auto bit = std::uint64_t{1} << std::countr_zero(open);
          bits.push_back({bit, ~joined & bit});
        }
        break;
      case Operator::HAS_ONLY:
        bits.push_back({all & ~joined, 0});
        break;
      case Operator::HAS_ALL:
        bits.push_back({joined, joined});
        break;
      case Operator::MASKED_IN: {
        const auto mask = readConstant(test.mask, true);
        if (!mask) {
          return std::nullopt;
        }
        for (std::size_t i = 0; i < values.size(); ++i) {
          if ((values[i] & ~*mask) != 0) {
            return fail(
                Fault::NEVER_MATCHES, test.values[i],
                "'" + test.values[i].text + "' has bits that '" + test.mask.text + "' removes",
                "the test can never hold: choose another mask or value");
          }
          bits.push_back({*mask, values[i]});
        }
        break;
      }
    }
    return bits;
  }

  const Argument& argument;
  const Test& test;
  Diagnostics& faults;
  const std::uint64_t all;
  std::vector<std::uint64_t> values;
};

const Argument* findArgument(const std::string& call, const Word& name, Diagnostics& faults) {
  const auto& arguments = argumentsOf(call);
  const auto found =
      std::find_if(arguments.begin(), arguments.end(),
                   [&](const Argument& argument) { return argument.name == name.text; });
  if (found != arguments.end()) {
    return &*found;
  }
  std::string known;
  for (const auto& argument : arguments) {
    known += (known.empty() ? "" : ", ") + argument.name;
  }
  faults.push_back({Fault::UNKNOWN_ARGUMENT, name.place,
                    "'" + call + "' has no argument '" + name.text + "'",
                    known.empty() ? "describe the call's arguments in policy/compiler/names.cpp"
                                  : "its arguments are " + known});
  return nullptr;
}

}  // namespace

std::optional<Condition> resolveCondition(const std::string& call, const std::vector<Test>& tests,
                                          Diagnostics& faults) {
  Condition condition;
  condition.cubes.emplace_back();
  std::vector<std::pair<unsigned, std::string>> texts;
  bool isSound = true;
  for (const auto& test : tests) {
    const auto* argument = findArgument(call, test.argument, faults);
    if (argument == nullptr) {
      isSound = false;
      continue;
    }
    const auto index = argument->index;
    if (std::any_of(texts.begin(), texts.end(),
                    [&](const auto& other) { return other.first == index; })) {
      faults.push_back({Fault::ARGUMENT_TWICE, test.argument.place,
                        "'" + argument->name + "' is tested twice in a rule",
                        "test it once; alternatives are rules of their own"});
      isSound = false;
      continue;
    }
    TestResolver resolver(*argument, test, faults);
    const auto bits = resolver.resolve();
    if (!bits) {
      isSound = false;
      continue;
    }
    texts.emplace_back(index, resolver.text());
    std::vector<Cube> product;
    for (const auto& cube : condition.cubes) {
      for (const auto& bit : *bits) {
        product.push_back(cube);
        product.back().mask[index] = bit.mask;
        product.back().value[index] = bit.value;
      }
    }
    condition.cubes = std::move(product);
  }
  if (!isSound) {
    return std::nullopt;
  }
  std::sort(texts.begin(), texts.end());
  for (const auto& [index, text] : texts) {
    condition.text += (condition.text.empty() ? " if " : " and ") + text;
  }
  return condition;
}

std::optional<int> resolveErrno(const Word& name, Diagnostics& faults) {
  if (name.text == "ENOSYS") {
    return ENOSYS;
  }
  if (name.text == "EACCES") {
    return EACCES;
  }
  faults.push_back(
      {Fault::UNKNOWN_ERRNO, name.place, "'" + name.text + "' is no answer that a policy may give",
       "ENOSYS for a new call with a fallback, EACCES for a file that a library can do without"});
  return std::nullopt;
}

std::string describeExcess(const Excess& excess) {
  const auto call = callName(excess.number).value_or(std::to_string(excess.number));
  std::ostringstream text;
  text << call << '(' << std::hex;
  const char* separator = "";
  for (const auto& argument : argumentsOf(call)) {
    if (argument.kind != ArgumentKind::POINTER) {
      text << separator << argument.name << "=0x" << excess.arguments[argument.index];
      separator = ", ";
    }
  }
  text << ')';
  return text.str();
}

}  // namespace cordon::policy::compiler
