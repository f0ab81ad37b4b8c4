#include "common/records/lines/testing/fixtures.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace cordon::records::testing {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

// name@FROM,TO
std::optional<Window> windowOf(const std::string& name) {
  const auto at = name.find('@');
  if (at == std::string::npos) return std::nullopt;
  const auto comma = name.find(',', at);
  if (comma == std::string::npos) throw std::runtime_error("no window: " + name);
  return Window{std::stoll(name.substr(at + 1, comma - at - 1)),
                std::stoll(name.substr(comma + 1))};
}

}  // namespace

std::vector<Fixture> fixturesOf(std::string_view folder) {
  const fs::path root = fs::path(CORDON_TEST_DATA) / folder;
  std::vector<Fixture> fixtures;
  std::vector<std::string> expectedFiles;
  std::vector<std::string> inputs;
  for (const auto& entry : fs::directory_iterator(root)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".jsonl") {
      inputs.push_back(path.stem());
    } else if (path.extension() == ".json") {
      Fixture fixture{path.stem(), {}, {}, read(path)};
      const std::string stem = fixture.name.substr(0, fixture.name.find('@'));
      expectedFiles.push_back(stem);
      fixture.bytes = read(root / (stem + ".jsonl"));
      fixture.window = windowOf(fixture.name);
      if (!fixture.expected.ends_with('\n')) throw std::runtime_error("no line: " + fixture.name);
      fixture.expected.pop_back();
      fixtures.push_back(std::move(fixture));
    }
  }
  for (const std::string& input : inputs) {
    if (std::ranges::find(expectedFiles, input) == expectedFiles.end())
      throw std::runtime_error("expected of nothing: " + input);
  }
  std::ranges::sort(fixtures, {}, &Fixture::name);
  return fixtures;
}

std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string inQuotes(std::string_view text) {
  return nlohmann::json(text).dump();
}

std::string listOf(const Findings& findings) {
  std::string out = "[";
  for (std::size_t i = 0; i < FINDING_COUNT; ++i) {
    const auto finding = static_cast<Finding>(i);
    if (!findings.has(finding)) continue;
    if (out.size() > 1) out += ',';
    out += inQuotes(nameOf(finding));
  }
  return out + "]";
}

}  // namespace cordon::records::testing
