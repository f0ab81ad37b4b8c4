#include "common/records/junit/case-list.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "common/records/junit/text-scan.h"

namespace cordon::records {

namespace {

// What a string of the heap costs beside its bytes.
constexpr std::size_t BLOCK_OVERHEAD = 16;

}  // namespace

bool CaseList::afford(std::size_t size, std::size_t overhead) {
  const std::size_t cost = size + overhead;
  if (size > limits.listedBytes - bytes || cost > limits.listMemory - memory) return false;
  if (!budget.take(cost)) return false;
  bytes += size;
  memory += cost;
  return true;
}

CaseList::Index CaseList::add(const std::vector<std::string_view>& suite,
                              std::string_view className, std::string_view name, bool cut) {
  if (stopped) return NONE;
  std::size_t room = limits.caseBytes;
  const auto fit = [&](std::string_view text) {
    const std::string_view kept = cutText(text, room);
    cut |= kept.size() < text.size();
    room -= kept.size();
    return kept;
  };
  // The innermost names say most, so they are the last to be cut.
  const std::string_view keptName = fit(name);
  const std::string_view keptClass = fit(className);
  std::vector<std::string_view> keptSuite(suite.size());
  std::transform(suite.rbegin(), suite.rend(), keptSuite.rbegin(), fit);

  const std::size_t names = limits.caseBytes - room;
  const std::size_t overhead =
      sizeof(Entry) + 3 * BLOCK_OVERHEAD + suite.size() * (sizeof(std::string) + BLOCK_OVERHEAD);
  if (entries.size() >= limits.listedCases || !afford(names, overhead)) {
    stopped = true;
    cutAny = true;
    return NONE;
  }
  Entry& entry = entries.emplace_back();
  entry.names = names;
  entry.item.suite.assign(keptSuite.begin(), keptSuite.end());
  entry.item.className = keptClass;
  entry.item.name = keptName;
  entry.item.attempts = 0;
  entry.item.truncated = cut;
  cutAny |= cut;
  return static_cast<Index>(entries.size() - 1);
}

void CaseList::startHashing(Entry& entry) {
  if (entry.rest) return;
  entry.rest = std::make_unique<channel::Sha256Hasher>();
  entry.rest->update(std::as_bytes(std::span(entry.item.text)));
}

void CaseList::append(Index index, std::string_view text) {
  if (text.empty()) return;
  Entry& entry = entries[index];
  entry.item.textBytes += text.size();
  if (entry.rest) {
    entry.rest->update(std::as_bytes(std::span(text)));
    return;
  }
  const std::size_t room =
      std::min(limits.caseBytes - entry.names - entry.item.text.size(), limits.listedBytes - bytes);
  std::string_view kept = cutText(text, room);
  if (!afford(kept.size(), 0)) kept = {};
  if (kept.size() < text.size()) {
    startHashing(entry);
    entry.rest->update(std::as_bytes(std::span(text)));
    entry.item.truncated = true;
    cutAny = true;
  }
  entry.item.text.append(kept);
}

void CaseList::close(Index index, CaseOutcome outcome, std::uint64_t attempts) {
  Entry& entry = entries[index];
  entry.item.outcome = outcome;
  entry.item.attempts += attempts;
  entry.item.text.shrink_to_fit();
}

std::vector<JunitCase> CaseList::release() {
  std::vector<JunitCase> cases;
  cases.reserve(entries.size());
  for (; !entries.empty(); entries.pop_front()) {
    Entry& entry = entries.front();
    if (entry.item.truncated) {
      startHashing(entry);
      entry.item.textSha256 = entry.rest->finish();
    }
    cases.push_back(std::move(entry.item));
  }
  return cases;
}

}  // namespace cordon::records
