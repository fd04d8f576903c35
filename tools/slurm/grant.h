// What a job is granted on a node, and the lines that say it. No Slurm in here, so that it can be tested
// without. Any thread.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace smt::slurm {

inline constexpr char kRefused[] = "refused: ";  // begins the text in the place of a grant

// The administrator's words, from plugstack.conf.
struct Site {
    std::string command = "/usr/bin/smt";
    std::string folder = "/run/smt-slurm";  // of the grants
    std::string accounts = "/var/log/smt-slurm.jsonl";
    std::string most_priority = "high";  // that a job may ask for
    std::string gpu;                     // as smt run --gpu takes it; empty: smt's default
    uint64_t memory_per_share = 0;       // bytes; 0: no limit
    std::vector<std::pair<std::string, std::string>> variables;  // of smt and of the job

    // One word: NAME=VALUE. Empty, or what is wrong with it.
    std::string take(std::string_view word);
    std::string file(uint32_t job) const { return folder + "/" + std::to_string(job); }
    std::string lines() const;  // of the variables
};

struct Grant {
    uint32_t job = 0;
    uint64_t shares = 0;
    std::string priority = {};  // empty: normal, or less where no more is granted

    std::string refusal(const Site& site) const;               // empty: it can be had
    std::vector<std::string> command(const Site& site) const;  // that prints the variables
};

std::optional<int> priority_of(std::string_view name);  // high, normal or low
std::string tenant_of(uint32_t job);
// Of what the command printed: the lines NAME=VALUE; all of it as one line.
std::string variables_in(std::string_view said);
std::string one_line(std::string_view said);
bool is_list(std::string_view variable);  // colons part it, and what is in front counts first
// Shares that a job has on a node, by Slurm's word for it: "gres:smt:50", "gres/smt=50", "smt". 0: none.
uint64_t shares_in(std::string_view tres);

// What smt log --totals says of a tenant: an object for each server that had programs of it.
struct Used {
    std::vector<std::string> servers;
    bool over = true;  // all its programs have ended, or their server has

    // user: of the job. What a system's server says of other users' tenants of that name is left out.
    static Used read(std::string_view totals, std::string_view user);
};
// A line of JSON. `problem`: why smt did not say; empty: it did.
std::string account(uint32_t job, uint32_t user, std::time_t ended, const Used& used,
                    const std::string& problem);

}  // namespace smt::slurm
