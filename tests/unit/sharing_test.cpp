// The table of what sessions share: who gets an object by its token, how long it lives, and whose descriptor
// keeps it.
#include "runtime/server/sharing.h"

#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <set>

namespace smt::tests {
namespace {

using protocol::SharedKind;
using runtime::server::family_of;
using runtime::server::Sharing;
using Answer = Sharing::Answer;

constexpr char kOurs[] = "tenant ours", kTheirs[] = "tenant theirs";

// Says when the last owner lets go of it.
std::shared_ptr<void> object(bool* gone = nullptr) {
    return std::shared_ptr<int>(new int(7), [gone](int* each) {
        delete each;
        if (gone) *gone = true;
    });
}

// As libsmt.so makes it: the lock is the open description's, which copies share.
int new_descriptor() {
    const int file = memfd_create("test", MFD_CLOEXEC);
    REQUIRE(file >= 0);
    REQUIRE(flock(file, LOCK_SH) == 0);
    return file;
}

protocol::Hello hello(const char* tenant, const char* family) {
    protocol::Hello made;
    std::strcpy(made.tenant, tenant);
    std::strcpy(made.family, family);
    return made;
}

TEST_CASE("Sharing: only the tenant that shared an object finds it, and refusals are counted") {
    Sharing sharing;
    const auto shared = object();
    const auto token = sharing.add(SharedKind::kMemory, kOurs, 1, shared, false);
    REQUIRE(token);
    const Sharing::Found found = sharing.find(SharedKind::kMemory, *token, kOurs);
    CHECK(found.answer == Answer::kFound);
    CHECK(found.object == shared);
    CHECK(found.session == 1);
    CHECK(sharing.refused() == 0);
    const Sharing::Found refused = sharing.find(SharedKind::kMemory, *token, kTheirs);
    CHECK(refused.answer == Answer::kForeign);
    CHECK(refused.object == nullptr);
    CHECK(sharing.refused() == 1);
}

TEST_CASE("Sharing: tokens are of one kind, and one that was changed is none") {
    Sharing sharing;
    const auto shared = object();
    auto token = *sharing.add(SharedKind::kMemory, kOurs, 1, shared, false);
    CHECK(sharing.find(SharedKind::kEvent, token, kOurs).answer == Answer::kUnknown);
    for (unsigned char& byte : token.bytes) {
        byte ^= 1;
        CHECK(sharing.find(SharedKind::kMemory, token, kOurs).answer == Answer::kUnknown);
        byte ^= 1;
    }
    CHECK(sharing.find(SharedKind::kMemory, token, kOurs).answer == Answer::kFound);
}

TEST_CASE("Sharing: an object has one token in a session, and no two objects have the same") {
    Sharing sharing;
    std::set<std::string> seen;
    std::vector<std::shared_ptr<void>> objects;
    for (int i = 0; i < 100; ++i) {
        objects.push_back(object());
        const auto text = [](const Sharing::Token& token) {
            return std::string(reinterpret_cast<const char*>(token.bytes), sizeof token.bytes);
        };
        const auto token = text(*sharing.add(SharedKind::kMemory, kOurs, 1, objects.back(), false));
        CHECK(seen.insert(token).second);
        CHECK(text(*sharing.add(SharedKind::kMemory, kOurs, 1, objects.back(), false)) == token);
        CHECK(seen.insert(text(*sharing.add(SharedKind::kMemory, kOurs, 2, objects.back(), false))).second);
    }
}

TEST_CASE("Sharing: a token ends with the object's owners") {
    Sharing sharing;
    bool gone = false;
    auto shared = object(&gone);
    const auto token = *sharing.add(SharedKind::kMemory, kOurs, 1, shared, false);
    auto other_owner = sharing.find(SharedKind::kMemory, token, kOurs).object;
    shared.reset();
    CHECK_FALSE(gone);
    CHECK(sharing.find(SharedKind::kMemory, token, kOurs).answer == Answer::kFound);
    other_owner.reset();
    CHECK(gone);
    CHECK(sharing.find(SharedKind::kMemory, token, kOurs).answer == Answer::kUnknown);
    CHECK(sharing.size() == 1);
    sharing.sweep();
    CHECK(sharing.size() == 0);
}

TEST_CASE("Sharing: a descriptor holds its object until its last copy is closed") {
    Sharing sharing;
    bool gone = false;
    auto shared = object(&gone);
    const auto token = *sharing.add(SharedKind::kPhysical, kOurs, 1, shared, true);
    shared.reset();
    const int file = new_descriptor();
    REQUIRE(sharing.watch(token, 1, file));
    CHECK((sharing.holds_for(1) && !sharing.holds_for(2)));
    const int copy = dup(file);
    sharing.ended(1);
    close(file);
    sharing.sweep();
    CHECK_FALSE(gone);
    CHECK(sharing.find(SharedKind::kPhysical, token, kOurs).answer == Answer::kFound);
    close(copy);
    sharing.sweep();
    CHECK_FALSE(sharing.holds_for(1));
    CHECK(gone);
    CHECK(sharing.size() == 0);
}

TEST_CASE("Sharing: two descriptors of one object are two tokens, which end by themselves") {
    Sharing sharing;
    bool gone = false;
    auto shared = object(&gone);
    const auto first = *sharing.add(SharedKind::kPhysical, kOurs, 1, shared, true);
    const auto second = *sharing.add(SharedKind::kPhysical, kOurs, 1, shared, true);
    shared.reset();
    const int one = new_descriptor(), two = new_descriptor();
    REQUIRE((sharing.watch(first, 1, one) && sharing.watch(second, 1, two)));
    close(one);
    sharing.sweep();
    CHECK(sharing.find(SharedKind::kPhysical, first, kOurs).answer == Answer::kUnknown);
    CHECK(sharing.find(SharedKind::kPhysical, second, kOurs).answer == Answer::kFound);
    CHECK_FALSE(gone);
    close(two);
    sharing.sweep();
    CHECK(gone);
}

TEST_CASE("Sharing: what a session exported without a descriptor that came is held until it ends") {
    Sharing sharing;
    bool gone = false;
    auto shared = object(&gone);
    const auto token = *sharing.add(SharedKind::kPhysical, kOurs, 1, shared, true);
    shared.reset();
    sharing.sweep();
    CHECK_FALSE(gone);
    sharing.ended(2);
    CHECK_FALSE(gone);
    sharing.ended(1);
    CHECK(gone);
    CHECK(sharing.find(SharedKind::kPhysical, token, kOurs).answer == Answer::kUnknown);
}

TEST_CASE("Sharing: a session can have its own tokens watched only, and by a file") {
    Sharing sharing;
    const auto shared = object();
    const auto physical = *sharing.add(SharedKind::kPhysical, kOurs, 1, shared, true);
    const auto memory = *sharing.add(SharedKind::kMemory, kOurs, 1, shared, false);
    const int file = new_descriptor();
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    CHECK_FALSE(sharing.watch(physical, 2, file));
    CHECK_FALSE(sharing.watch(memory, 1, file));
    CHECK_FALSE(sharing.watch(physical, 1, ends[0]));
    CHECK_FALSE(sharing.watch(physical, 1, -1));
    CHECK(sharing.watch(physical, 1, file));
    CHECK_FALSE(sharing.watch(physical, 1, file));
    for (int each : {file, ends[0], ends[1]}) close(each);
}

TEST_CASE("Sharing: a tenant is its name, or else the family of its program") {
    CHECK(family_of(hello("a", "")) == family_of(hello("a", "")));
    CHECK(family_of(hello("a", "")) != family_of(hello("b", "")));
    CHECK(family_of(hello("a", "x")) == family_of(hello("b", "x")));
    CHECK(family_of(hello("a", "x")) != family_of(hello("a", "y")));
    CHECK(family_of(hello("x", "")) != family_of(hello("a", "x")));
}

}  // namespace
}  // namespace smt::tests
