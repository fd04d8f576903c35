#include "tools/slurm/grant.h"

#include <catch2/catch.hpp>

using namespace smt::slurm;

TEST_CASE("what Slurm says of a job's shares") {
    CHECK(shares_in("gres:smt:50") == 50);
    CHECK(shares_in("gres/smt=50") == 50);
    CHECK(shares_in("gres:smt") == 1);
    CHECK(shares_in("gres:gpu:2,gres:smt:7") == 7);
    for (const char* other :
         {"", "gres:gpu:2", "gres:smtx:3", "gres:smt:", "gres:smt:a", "gres:smt:-1", "gres:smt:7x"})
        CHECK(shares_in(other) == 0);
}

TEST_CASE("the administrator's words") {
    Site site;
    for (const char* word : {"command=/opt/smt/bin/smt", "folder=/run/x", "accounts=/var/x",
                             "most_priority=low", "gpu=any", "memory_per_share=2M", "env=SMT_A=b=c"})
        CHECK(site.take(word) == "");
    CHECK(site.command == "/opt/smt/bin/smt");
    CHECK(site.file(7) == "/run/x/7");
    CHECK(site.memory_per_share == 2u << 20);
    CHECK(site.lines() == "SMT_A=b=c\n");
    for (const char* word : {"", "gpu", "gpu=", "memory_per_share=much", "memory_per_share=0",
                             "most_priority=1", "env=A", "env==b", "colour=red"}) {
        CAPTURE(word);
        CHECK(site.take(word) != "");
    }
}

TEST_CASE("a grant is a command, or is refused") {
    Site site;
    site.memory_per_share = 1 << 20;
    site.gpu = "any";
    const std::vector<std::string> expected = {"/usr/bin/smt", "run",   "--env",      "--tenant", "job-7",
                                               "--weight",     "3",     "--priority", "high",     "--memory",
                                               "3145728",      "--gpu", "any"};
    CHECK(Grant{7, 3, "high"}.command(site) == expected);
    CHECK(Grant{7, 3, "high"}.refusal(site) == "");
    CHECK(Grant{7, 1000, ""}.refusal(site) == "");
    CHECK(Grant{7, 1001, ""}.refusal(site) == "--gres=smt:1001: 1000 shares are the most");
    CHECK(Grant{7, 3, "urgent"}.refusal(site) == "--smt-priority=urgent: wants high, normal or low");
    site.most_priority = "low";
    CHECK(Grant{7, 3, "low"}.refusal(site) == "");
    CHECK(Grant{7, 3, ""}.refusal(site) == "");
    CHECK(Grant{7, 3, ""}.command(site)[8] == "low");
    CHECK(Grant{7, 3, "normal"}.refusal(site) ==
          "--smt-priority=normal: low is the most that this cluster grants");
    site.memory_per_share = UINT64_MAX / 2;
    CHECK(Grant{7, 3, "low"}.refusal(site) != "");
}

TEST_CASE("what a job used") {
    const Used used = Used::read(
        "{\"tenant\":\"alice/job-7\",\"sessions\":2,\"ended\":2}\nsmt log: half a line\n"
        "{\"tenant\":\"mallory/job-7\",\"sessions\":2,\"ended\":1}\n"
        "{\"tenant\":\"job-7\",\"sessions\":2,\"ended\":1,\"earlier\":true}\n",
        "alice");
    CHECK(used.servers.size() == 2);
    CHECK(used.over);
    CHECK(!Used::read("{\"sessions\":2,\"ended\":1}", "alice").over);
    CHECK(Used::read("", "alice").over);
    CHECK(account(7, 1000, 5, Used::read("{\"tenant\":\"job-7\"}\n{\"tenant\":\"job-7\"}", ""), "") ==
          "{\"job\":7,\"uid\":1000,\"ended\":5,\"used\":[{\"tenant\":\"job-7\"},{\"tenant\":\"job-7\"}]}\n");
    CHECK(account(7, 1000, 5, {}, "no \"server\"") ==
          "{\"job\":7,\"uid\":1000,\"ended\":5,\"used\":[],\"problem\":\"no \\\"server\\\"\"}\n");
}

TEST_CASE("what the command prints is a grant, or a reason in one line") {
    CHECK(variables_in("smt run: careful\nSMT_WEIGHT=2\nno line\nA_b=c=d\n=x\n") ==
          "SMT_WEIGHT=2\nA_b=c=d\n");
    CHECK(one_line("smt run: no GPU\nusage: smt\n") == "smt run: no GPU; usage: smt");
    CHECK(one_line("") == "");
}
