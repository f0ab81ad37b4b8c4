#include "services/guest/agent-fixture.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/channel/encoder.h"
#include "tests/support/residue.h"

namespace cordon::guest {
namespace {

constexpr const char* USERS =
    "root:x:0:0:root:@/homes/root:/bin/bash\n"
    "broken line\n"
    "postgres:x:61002:61002:PostgreSQL:@/homes/postgres:/bin/bash\n"
    "homeless:x:61003:61003::/nonexistent:\n";
constexpr const char* AGENT_LINE = "agent:x:61001:61001::@/homes/agent:/bin/sh\n";
constexpr const char* GROUPS =
    "root:x:0:\n"
    "agent:x:61001:\n"
    "postgres:x:61002:\n"
    "homeless:x:61003:\n"
    "tools:x:61010:agent,postgres\n"
    "certs:x:61011:someone,postgres\n";

std::string inWorld(const World& world, std::string text) {
  for (std::size_t at; (at = text.find('@')) != std::string::npos;) text.replace(at, 1, world.root);
  return text;
}

void must(bool done, const char* what) {
  if (done) return;
  std::perror(what);
  std::abort();
}

void makeHome(const World& world, const std::string& name, uid_t uid) {
  std::string home = world.home(name);
  std::filesystem::remove_all(home);
  std::filesystem::create_directories(home);
  must(::chown(home.c_str(), uid, uid) == 0, "chown");
  must(::chmod(home.c_str(), 0700) == 0, "chmod");
}

void removeWorld(const std::string& root) {
  std::error_code ignored;
  std::filesystem::remove_all(root, ignored);
}

}  // namespace

bool enterWorld(World& world) {
  if (::geteuid() != 0) return false;
  static const std::string root = [&] {
    tests::endCommandsOfTheGone();
    std::string made = tests::makeOwnedDirectory("cordon-guest-test");
    must(::chmod(made.c_str(), 0755) == 0, "chmod");
    must(::unshare(CLONE_NEWNS) == 0, "unshare");
    must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "mount private");
    for (const char* name : {"passwd", "group"}) {
      std::string file = made + "/" + name;
      writeWhole(file, "");
      must(::mount(file.c_str(), (std::string("/etc/") + name).c_str(), nullptr, MS_BIND,
                   nullptr) == 0,
           "mount bind");
    }
    // Only the process that made it removes it, not a child that a death test or a fork left
    // behind.
    static std::string removed = made;
    static pid_t maker = ::getpid();
    std::atexit([] {
      if (::getpid() == maker) removeWorld(removed);
    });
    return made;
  }();
  world.root = root;
  writeWhole(root + "/passwd", inWorld(world, std::string(USERS) + AGENT_LINE));
  writeWhole(root + "/group", GROUPS);
  makeHome(world, "root", 0);
  makeHome(world, "agent", World::AGENT);
  makeHome(world, "postgres", World::POSTGRES);
  return true;
}

void removeAgentUser(const World& world) {
  writeWhole(world.root + "/passwd", inWorld(world, USERS));
}

void AgentTest::coverWithTmpfs(const std::string& directory, std::size_t size) {
  std::string options = "mode=1777,size=" + std::to_string(size);
  must(::mount("tmpfs", directory.c_str(), "tmpfs", 0, options.c_str()) == 0, "mount tmpfs");
  covered.push_back(directory);
}

channel::Id freshId() {
  channel::Id id;
  must(::getrandom(id.bytes.data(), id.bytes.size(), 0) == static_cast<ssize_t>(id.bytes.size()),
       "getrandom");
  return id;
}

std::string shellQuoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void AgentTest::SetUp() {
  if (!enterWorld(world)) GTEST_SKIP() << "SKIPPED(host-lacks:root): users and mounts need it";
  socketPath = world.root + "/agent.sock";
}

AgentTest::~AgentTest() {
  stop();
  // Each agent's commands live on where a test did not end them.
  for (const pid_t agent : started) tests::endCommandsOf(agent);
  for (const std::string& directory : covered) ::umount2(directory.c_str(), MNT_DETACH);
}

void AgentTest::start(const std::vector<std::string>& arguments, rlim_t openFiles,
                      std::optional<uid_t> uid) {
  stop();
  ::unlink(socketPath.c_str());
  std::vector<std::string> words{CORDON_GUEST_BINARY, "--listen", "unix:" + socketPath};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid = ::fork();
  must(pid >= 0, "fork");
  if (pid == 0) {
    rlimit limit{openFiles, openFiles};
    if (openFiles != 0 && ::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(125);
    if (uid && (::setgid(*uid) != 0 || ::setuid(*uid) != 0)) ::_exit(125);
    tests::dieWith(parent);
    if (beforeExec) beforeExec();
    ::execv(argv[0], argv.data());
    ::_exit(125);
  }
  started.push_back(pid);
  ASSERT_TRUE(eventually([&] { return connect().valid(); })) << "the agent does not listen";
  ask(channel::Ping{}).as<channel::Pong>();
}

void AgentTest::stop() {
  if (pid <= 0) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  pid = -1;
}

Fd AgentTest::connect() const {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, socketPath.c_str(), sizeof name.sun_path - 1);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) return Fd();
  return socket;
}

bool AgentTest::send(const Fd& socket, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

Got AgentTest::receive(const Fd& socket) {
  Got got;
  channel::Decoder decoder(std::uint64_t{1} << 30);
  auto buffer = std::make_unique<std::array<std::byte, 65536>>();
  for (;;) {
    ssize_t count = ::recv(socket.get(), buffer->data(), buffer->size(), 0);
    if (count <= 0) {
      if (got.message) {
        got.cleanEnd = count == 0;
      } else {
        got.error = decoder.finish();
      }
      return got;
    }
    std::span<const std::byte> input(buffer->data(), static_cast<std::size_t>(count));
    if (got.message) return got;  // bytes behind the reply
    for (bool more = true; more;) {
      auto event = decoder.next(input);
      if (auto* error = std::get_if<channel::DecodeError>(&event)) {
        got.error = *error;
        return got;
      }
      if (auto* bulk = std::get_if<channel::Decoder::Bulk>(&event)) {
        got.bulk.append(reinterpret_cast<const char*>(bulk->bytes.data()), bulk->bytes.size());
      }
      if (std::holds_alternative<channel::Decoder::Done>(event)) {
        got.message = decoder.take();
        if (!input.empty()) return got;
        break;
      }
      more = !std::holds_alternative<channel::Decoder::NeedMore>(event);
    }
  }
}

Got AgentTest::call(const channel::Message& message, std::string_view bulk) const {
  Fd socket = connect();
  if (!socket.valid()) {
    ADD_FAILURE() << "cannot connect";
    return {};
  }
  auto frame = channel::encodeMessage(message, std::as_bytes(std::span(bulk)));
  if (!std::holds_alternative<std::string>(frame)) {
    ADD_FAILURE() << "the test's own message cannot be encoded";
    return {};
  }
  EXPECT_TRUE(send(socket, std::get<std::string>(frame)));
  return receive(socket);
}

Got AgentTest::ask(channel::Body body, std::string_view bulk) const {
  channel::Message message{freshId(), std::move(body)};
  Got got = call(message, bulk);
  if (got.message) {
    EXPECT_EQ(got.message->id, message.id);
    EXPECT_TRUE(got.cleanEnd);
  }
  return got;
}

channel::Exec AgentTest::shell(const std::string& script) {
  channel::Exec exec;
  exec.cmd = {"/bin/sh", "-c", script};
  return exec;
}

std::vector<channel::DiagEntry> AgentTest::diag() const {
  channel::Diag all;
  all.maxEntries = channel::MAX_DIAG_ENTRIES;
  return ask(all).as<channel::DiagResult>().entries;
}

std::optional<channel::DiagEntry> AgentTest::diagEntry(std::string_view event) const {
  auto entries = diag();
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->event == event) return *entry;
  }
  return std::nullopt;
}

std::string stdoutOf(const Got& got) {
  return got.bulk.substr(0, static_cast<std::size_t>(got.as<channel::ExecResult>().stdoutSize));
}

std::string stderrOf(const Got& got) {
  return got.bulk.substr(static_cast<std::size_t>(got.as<channel::ExecResult>().stdoutSize));
}

std::string readWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void writeWhole(const std::string& path, std::string_view content) {
  // In place: the inode is what is bound over /etc.
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  must(static_cast<bool>(file.flush()), path.c_str());
}

void shortNap() {
  timespec pause{0, 5'000'000};
  ::nanosleep(&pause, nullptr);
}

}  // namespace cordon::guest
