#include "services/guest/supervision.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>

#include "common/channel/limits.h"
#include "services/guest/clock.h"

namespace cordon::guest {
namespace {

constexpr std::size_t SCRATCH = 64u << 10;
// How often the death of a process group is looked for: nothing reports it.
constexpr std::int64_t LIFE_CHECK_MS = 50;
// The same for the main process on a kernel without pidfd_open (before 5.3).
constexpr std::int64_t OLD_KERNEL_CHECK_MS = 20;

// Whether a live process of group `group` exists. The group's leader stays a zombie until the reply
// is ready, so that no one else can get its number; kill(2) would count it as alive.
bool groupLives(pid_t group) {
  DIR* listing = ::opendir("/proc");
  if (listing == nullptr) return ::kill(-group, 0) == 0;
  bool found = false;
  while (dirent* entry = ::readdir(listing)) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    Fd file(::openat(::dirfd(listing), (std::string(entry->d_name) + "/stat").c_str(),
                     O_RDONLY | O_CLOEXEC));
    std::array<char, 512> text;
    ssize_t count = file.valid() ? ::read(file.get(), text.data(), text.size() - 1) : -1;
    if (count <= 0) continue;
    text[static_cast<std::size_t>(count)] = '\0';
    // "pid (name) state ppid pgrp …", where the name may hold anything, ") " included.
    const char* afterName = std::strrchr(text.data(), ')');
    if (afterName == nullptr || std::strlen(afterName) < 5) continue;
    char state = afterName[2];
    char* rest = nullptr;
    (void)std::strtol(afterName + 4, &rest, 10);
    if (std::strtol(rest, nullptr, 10) != group || state == 'Z' || state == 'X') continue;
    found = true;
    break;
  }
  ::closedir(listing);
  return found;
}

}  // namespace

void Capture::drain(std::byte* piece, std::size_t size) {
  ssize_t count = ::read(pipe.get(), piece, size);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) {
    pipe.reset();
    return;
  }
  auto got = static_cast<std::size_t>(count);
  std::size_t room = limit - std::min<std::size_t>(limit, static_cast<std::size_t>(bytes.size()));
  if (room < got) cut = true;
  bytes.append({piece, std::min(room, got)});
  last.append(reinterpret_cast<const char*>(piece) + (got - std::min(got, tailLimit)),
              std::min(got, tailLimit));
  if (last.size() > tailLimit) last.erase(0, last.size() - tailLimit);
}

Supervision::Supervision(Child started, std::optional<Fd> feed, const Spool& bytes, Capture out,
                         Capture err, const ExecCgroup* joined, std::int64_t untilMs)
    : child(std::move(started)),
      handle(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0))),
      in(std::move(feed)),
      input(bytes),
      standardOut(std::move(out)),
      standardErr(std::move(err)),
      cgroup(joined),
      deadlineMs(untilMs),
      scratch(std::make_unique_for_overwrite<std::byte[]>(SCRATCH)) {}

void Supervision::run() {
  for (;;) {
    checkMain();
    std::int64_t now = nowMs();
    advance(now);
    if (finished(now)) break;
    waitForEvent(now);
  }
  // What the pipes hold already was written in time.
  for (Capture* capture : {&standardOut, &standardErr}) {
    for (int piece = 0; capture->open() && piece < 64; ++piece) {
      pollfd ready{capture->descriptor(), POLLIN, 0};
      if (::poll(&ready, 1, 0) <= 0) break;
      capture->drain(scratch.get(), SCRATCH);
    }
  }
}

bool Supervision::finished(std::int64_t now) {
  bool pipesClosed = !standardOut.open() && !standardErr.open() && !child.reports.valid();
  switch (phase) {
    case Phase::RUNNING:
      return mainEnded && (pipesClosed || now >= drainEndMs);
    case Phase::TERMINATING:
      return false;
    case Phase::KILLED:
      return (mainEnded && !anythingLives()) || now >= phaseEndMs;
  }
  return true;
}

void Supervision::advance(std::int64_t now) {
  if (phase == Phase::RUNNING && now >= deadlineMs && !finished(now)) {
    phase = Phase::TERMINATING;
    phaseEndMs = now + channel::KILL_GRACE_MS;
    signalGroup(SIGTERM);
    if (cgroup != nullptr) cgroup->terminate();
  }
  // Whatever is alive gets its grace; once nothing is, KILL changes nothing and need not wait.
  if (phase == Phase::TERMINATING && (now >= phaseEndMs || (mainEnded && !anythingLives()))) {
    phase = Phase::KILLED;
    phaseEndMs = now + channel::WAIT_DELAY_MS;
    signalGroup(SIGKILL);
    cgroupKilled = cgroup != nullptr && cgroup->kill();
  }
}

void Supervision::waitForEvent(std::int64_t now) {
  std::array<pollfd, 5> polled{};
  polled[0] = {child.reports.get(), POLLIN, 0};
  polled[1] = {in ? in->get() : -1, POLLOUT, 0};
  polled[2] = {standardOut.descriptor(), POLLIN, 0};
  polled[3] = {standardErr.descriptor(), POLLIN, 0};
  polled[4] = {mainEnded ? -1 : handle.get(), POLLIN, 0};
  std::int64_t until = phase == Phase::RUNNING ? deadlineMs : phaseEndMs;
  if (phase == Phase::RUNNING && mainEnded) until = std::min(until, drainEndMs);
  std::int64_t wait = std::clamp<std::int64_t>(until - now, 0, INT_MAX);
  if (phase != Phase::RUNNING) wait = std::min(wait, LIFE_CHECK_MS);
  if (!mainEnded && !handle.valid()) wait = std::min(wait, OLD_KERNEL_CHECK_MS);
  if (::poll(polled.data(), polled.size(), static_cast<int>(wait)) <= 0) return;
  if (polled[0].revents != 0) readReports();
  if (polled[1].revents != 0) feedInput();
  if (polled[2].revents != 0) standardOut.drain(scratch.get(), SCRATCH);
  if (polled[3].revents != 0) standardErr.drain(scratch.get(), SCRATCH);
}

void Supervision::readReports() {
  SpawnReport report{};
  ssize_t count = ::read(child.reports.get(), &report, sizeof report);
  if (count < 0 && errno == EINTR) return;
  if (count == static_cast<ssize_t>(sizeof report)) {
    spawnReports.push_back(report);
  } else {
    child.reports.reset();
  }
}

void Supervision::feedInput() {
  std::ptrdiff_t got = input.read(fed, {scratch.get(), SCRATCH});
  if (got > 0) {
    ssize_t count = ::write(in->get(), scratch.get(), static_cast<std::size_t>(got));
    if (count > 0) fed += static_cast<std::uint64_t>(count);
    // EPIPE: the command does not want the rest, as is its right.
    if (count > 0 || errno == EINTR || errno == EAGAIN) return;
  }
  in.reset();
}

void Supervision::checkMain() {
  if (mainEnded) return;
  siginfo_t info{};
  // WNOWAIT: as long as the zombie stands, its number, which is the group's, cannot pass to a
  // stranger.
  int result = ::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOHANG | WNOWAIT);
  if (result != 0 || info.si_pid != child.pid) return;
  mainEnded = true;
  drainEndMs = nowMs() + channel::WAIT_DELAY_MS;
}

void Supervision::signalGroup(int signal) const {
  // The leader by its number too: it may not have reached its setpgid yet.
  ::kill(-child.pid, signal);
  ::kill(child.pid, signal);
}

bool Supervision::anythingLives() const {
  return (cgroup != nullptr && cgroup->populated()) || groupLives(child.pid);
}

int Supervision::reap() {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED) != 0 && errno == EINTR) {
  }
  return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}

}  // namespace cordon::guest
