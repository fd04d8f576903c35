// smt_spank.so: jobs with --gres=smt:SHARES share GPUs through smt (README.md).
//
// Prolog (root, once for a job and node): what was granted becomes the file FOLDER/JOB, a line NAME=VALUE for
// each variable. Task (its user): the file becomes part of the environment. Epilog (root): what the job used
// becomes a line in the file of accounts, and FOLDER/JOB goes.
//
// A grant that cannot be had is a text in FOLDER/JOB, which each task of the job says and ends with: a prolog
// that fails would take the whole node out of service.
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

extern "C" {  // its callbacks have no linkage of C in its own declarations
#include <slurm/slurm.h>
#include <slurm/spank.h>
}

#include "tools/slurm/grant.h"

namespace {

using smt::slurm::Grant;
using smt::slurm::Site;
using smt::slurm::Used;

// The options of srun, sbatch and salloc. Slurm keeps what the user says.
spank_option priority_option{
    const_cast<char*>("smt-priority"),
    const_cast<char*>("high|normal|low"),
    const_cast<char*>("how urgent the job's kernels are among those that share the GPU"),
    1,
    0,
    [](int, const char* value, int) -> int {
        return smt::slurm::priority_of(value ? value : "") ? ESPANK_SUCCESS : ESPANK_BAD_ARG;
    }};

constexpr unsigned kLongest = 60;                 // seconds that a command may take
constexpr auto kEnds = std::chrono::seconds(60);  // for the sessions of a job that is over
constexpr useconds_t kPause = 100'000;
constexpr int kTaskEnds = -1;  // for Slurm another error of a task's plugin is none

std::string option(spank_t spank, spank_option& wanted) {
    char* value = nullptr;
    return spank_option_getopt(spank, &wanted, &value) == ESPANK_SUCCESS && value ? value : "";
}

std::optional<Site> site_of(int count, char** arguments) {
    Site site;
    for (int i = 0; i < count; ++i) {
        if (const std::string problem = site.take(arguments[i]); !problem.empty()) {
            slurm_error("smt: plugstack.conf: %s", problem.c_str());
            return std::nullopt;
        }
    }
    return site;
}

struct Job {
    uint32_t id = 0;
    uint32_t user = 0;
    uint64_t shares = 0;
};

// Of this node. Empty: Slurm does not say.
std::optional<Job> job_of(spank_t spank) {
    Job job;
    uid_t user = 0;
    if (spank_get_item(spank, S_JOB_ID, &job.id) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS)
        return std::nullopt;
    job.user = user;
    job_info_msg_t* found = nullptr;
    if (slurm_load_job(&found, job.id, SHOW_ALL) != SLURM_SUCCESS || !found) return std::nullopt;
    for (uint32_t i = 0; i < found->record_count; ++i)  // of a heterogeneous job there are several
        if (const slurm_job_info_t& each = found->job_array[i]; each.job_id == job.id && each.tres_per_node)
            job.shares = smt::slurm::shares_in(each.tres_per_node);
    slurm_free_job_info_msg(found);
    return job;
}

// What the command prints, and its exit code. No shell reads its arguments.
int run(const Site& site, const std::vector<std::string>& command, std::string* said) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return 127;
    const pid_t child = fork();
    if (child < 0) return close(ends[0]), close(ends[1]), 127;
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        alarm(kLongest);  // it outlives exec
        for (const auto& [name, value] : site.variables) setenv(name.c_str(), value.c_str(), 1);
        std::vector<char*> argv;
        for (const std::string& each : command) argv.push_back(const_cast<char*>(each.c_str()));
        argv.push_back(nullptr);
        execv(argv[0], argv.data());
        _exit(127);
    }
    close(ends[1]);
    std::array<char, 4096> part;
    for (ssize_t got; (got = read(ends[0], part.data(), part.size())) > 0 || (got < 0 && errno == EINTR);)
        if (got > 0) said->append(part.data(), static_cast<size_t>(got));
    close(ends[0]);
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 127;
    if (code != 0 && said->empty()) *said = command[0] + " cannot be run, or was ended";
    return code;
}

// As a system's server calls a user (runtime/server/users.h).
std::string name_of(uid_t user) {
    std::vector<char> text(1 << 16);
    passwd record{};
    passwd* found = nullptr;
    const bool known = getpwuid_r(user, &record, text.data(), text.size(), &found) == 0 && found;
    const std::string name = known ? found->pw_name : "";
    const bool is_number = name.find_first_not_of("0123456789") == std::string::npos;
    return is_number ? std::to_string(user) : name;
}

// Slurm has ended the job's processes, of which a server hears at once; its sessions take a moment to end.
Used used_by(const Site& site, uint32_t job, uid_t user, std::string* problem) {
    const auto until = std::chrono::steady_clock::now() + kEnds;
    while (true) {
        std::string said;
        const int code =
            run(site, {site.command, "log", "--totals", "--tenant", smt::slurm::tenant_of(job)}, &said);
        const Used used = Used::read(said, name_of(user));
        *problem = code == 0 ? "" : smt::slurm::one_line(said);
        if (used.over) return used;
        *problem = "programs of it have not ended";
        if (std::chrono::steady_clock::now() > until) return used;
        usleep(kPause);
    }
}

// Whether root alone can have written there: the tasks of all users go by what they find.
bool is_roots(const struct stat& found) {
    return found.st_uid == 0 && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool make_folder(const std::string& path) {
    if (mkdir(path.c_str(), 0755) == 0) chmod(path.c_str(), 0755);  // whatever the umask
    struct stat found{};
    return lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && is_roots(found);
}

// Written by root, read by the job's user; never seen half written.
bool write_file(const std::string& path, const std::string& text) {
    const std::string other = path + ".new";
    const int file = open(other.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0) return false;
    fchmod(file, 0644);
    const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(file);
    return written && rename(other.c_str(), path.c_str()) == 0;
}

}  // namespace

extern "C" {

extern const char plugin_name[] = "smt";
extern const char plugin_type[] = "spank";
extern const unsigned int plugin_version = SLURM_VERSION_NUMBER;
extern const unsigned int spank_plugin_version = 1;

int slurm_spank_init(spank_t spank, int count, char** arguments) {
    if (!site_of(count, arguments)) return ESPANK_ERROR;
    return spank_context() == S_CTX_SLURMD ? ESPANK_SUCCESS : spank_option_register(spank, &priority_option);
}

int slurm_spank_job_prolog(spank_t spank, int count, char** arguments) {
    const std::optional<Site> site = site_of(count, arguments);
    const std::optional<Job> job = job_of(spank);
    if (!job) slurm_error("smt: Slurm does not say what this job has, which runs without smt");
    if (!site || !job || job->shares == 0) return ESPANK_SUCCESS;
    const Grant grant{job->id, job->shares, option(spank, priority_option)};
    std::string text = grant.refusal(*site);
    if (text.empty()) {
        const int code = run(*site, grant.command(*site), &text);
        text = code == 0 ? site->lines() + smt::slurm::variables_in(text)
                         : smt::slurm::kRefused + smt::slurm::one_line(text);
    } else {
        text = smt::slurm::kRefused + text;
    }
    if (!make_folder(site->folder))
        slurm_error("smt: %s is no folder that root alone writes", site->folder.c_str());
    else if (!write_file(site->file(job->id), text))
        slurm_error("smt: cannot write %s: %s", site->file(job->id).c_str(), strerror(errno));
    return ESPANK_SUCCESS;
}

int slurm_spank_task_init(spank_t spank, int count, char** arguments) {
    const std::optional<Site> site = site_of(count, arguments);
    uint32_t id = 0;
    if (!site || spank_get_item(spank, S_JOB_ID, &id) != ESPANK_SUCCESS) return ESPANK_SUCCESS;
    struct stat folder{};
    if (lstat(site->folder.c_str(), &folder) != 0 || !is_roots(folder)) return ESPANK_SUCCESS;
    std::ifstream file(site->file(id));
    std::string line;
    while (std::getline(file, line)) {
        if (line.starts_with(smt::slurm::kRefused)) {
            slurm_spank_log("smt: %s", line.substr(std::strlen(smt::slurm::kRefused)).c_str());
            return kTaskEnds;
        }
        const size_t sign = line.find('=');
        if (sign == std::string::npos) continue;
        const std::string name = line.substr(0, sign);
        std::string value = line.substr(sign + 1);
        std::array<char, 1 << 15> there{};
        if (smt::slurm::is_list(name) &&
            spank_getenv(spank, name.c_str(), there.data(), there.size()) == ESPANK_SUCCESS && there[0])
            value += ":" + std::string(there.data());
        if (spank_setenv(spank, name.c_str(), value.c_str(), 1) != ESPANK_SUCCESS) {
            slurm_spank_log("smt: the task's environment has no room for %s", name.c_str());
            return kTaskEnds;
        }
    }
    return ESPANK_SUCCESS;
}

int slurm_spank_job_epilog(spank_t spank, int count, char** arguments) {
    const std::optional<Site> site = site_of(count, arguments);
    uint32_t id = 0;
    uid_t user = 0;
    if (!site || spank_get_item(spank, S_JOB_ID, &id) != ESPANK_SUCCESS ||
        access(site->file(id).c_str(), F_OK) != 0)
        return ESPANK_SUCCESS;
    spank_get_item(spank, S_JOB_UID, &user);
    std::string problem;
    const Used used = used_by(*site, id, user, &problem);
    const std::string line = smt::slurm::account(id, user, std::time(nullptr), used, problem);
    unlink(site->file(id).c_str());
    const int file = open(site->accounts.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (file < 0 || write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
        slurm_error("smt: cannot write %s: %s", site->accounts.c_str(), strerror(errno));
    if (file >= 0) close(file);
    return ESPANK_SUCCESS;
}

}  // extern "C"
