#include "services/guest/users.h"

#include <fstream>
#include <unistd.h>

#include <gtest/gtest.h>

namespace cordon::guest {
namespace {

class UsersTest : public testing::Test {
 protected:
  UsersTest() {
    std::string made = testing::TempDir() + "cordon-users-XXXXXX";
    directory = ::mkdtemp(made.data());
  }
  ~UsersTest() override {
    ::unlink((directory + "/passwd").c_str());
    ::unlink((directory + "/group").c_str());
    ::rmdir(directory.c_str());
  }
  UserDatabase database(const std::string& passwd, const std::string& group) const {
    std::ofstream(directory + "/passwd") << passwd;
    std::ofstream(directory + "/group") << group;
    return UserDatabase(directory + "/passwd", directory + "/group");
  }
  std::string directory;
};

TEST_F(UsersTest, ReadsALineAndTheGroupsThatListTheName) {
  auto users = database("agent:x:1000:1001:A, gent:/home/agent:/bin/bash\n",
                        "agent:x:1001:agent\nadm:x:4:syslog,agent\nsudo:x:27:agents,agen\n"
                        "docker:x:999:agent,other\nadm2:x:4:agent\n");
  auto user = users.byName("agent");
  ASSERT_TRUE(user);
  EXPECT_EQ(user->uid, 1000U);
  EXPECT_EQ(user->gid, 1001U);
  EXPECT_EQ(user->home, "/home/agent");
  EXPECT_EQ(user->shell, "/bin/bash");
  EXPECT_EQ(user->groups, (std::vector<gid_t>{1001, 4, 999}));
  EXPECT_EQ(users.byUid(1000)->name, "agent");
  EXPECT_FALSE(users.byUid(1001));
}

TEST_F(UsersTest, SkipsWhatIsNoUser) {
  auto users = database(
      "short:x:1\n:x:1:1::/:\nlong:x:1:1::/:/bin/sh:more\nminus:x:-1:1::/:\nnone:x:4294967295:1::/"
      ":\n"
      "huge:x:4294967296:1::/:\nspace:x: 1:1::/:\nhex:x:0x1:1::/:\nempty:x::1::/:\n+nis::::::\n"
      "last:x:7:8::/l:/s",
      "");
  for (const char* name :
       {"short", "", "long", "minus", "none", "huge", "space", "hex", "empty", "+nis"}) {
    EXPECT_FALSE(users.byName(name)) << name;
  }
  auto last = users.byName("last");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->shell, "/s");
}

TEST_F(UsersTest, TheFirstLineOfANameWins) {
  auto users = database("twice:x:5:5::/a:\ntwice:x:6:6::/b:\n", "");
  EXPECT_EQ(users.byName("twice")->uid, 5U);
}

TEST_F(UsersTest, NoFilesMeansNoUsers) {
  UserDatabase users(directory + "/none", directory + "/none");
  EXPECT_FALSE(users.byName("root"));
  EXPECT_FALSE(users.byUid(0));
}

}  // namespace
}  // namespace cordon::guest
