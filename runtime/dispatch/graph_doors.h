// A graph that can be stopped: a copy of the program's, whose nodes are kernels with doors
// (rewriter/device/door.h).
//
// A graph is one call of the driver, and its nodes keep the parameters with which it was instantiated. So the
// words that the doors go by belong to the graph and stay the same: one stop word for all nodes, and a
// frontier for each. All nodes are of run 1.
//
//   launch   frontiers are cleared in the stream's order. Behind a launch that is under way they are kept
//            first, in other words
//   stop     one write. CTAs that have not begun leave at once, in each branch, and all CTAs of nodes behind
//   settle   once the graph has ended its frontiers say what has run of each node
//   resume   the same graph is launched again: nodes that have run have a final frontier at 0, which refuses
//            all of their CTAs; nodes that have not begun have a frontier at 0; the few that have run in part
//            get a parameter that says where they go on
//
// How long kernels take is learnt where they are launched one by one, with the host's time between them. Some
// launches of the graph tell by how much that is too long. From then on kernels in a row decide on each
// other's begin (DoorStep::next): some more nodes at each launch, since each is a call of the driver.
//
// A node begins when those in front of it are over, or refused. If one was refused the stop word was written
// before, so all behind it is refused, too. That holds for kernels alone: a copy or a fill behind a refused
// kernel would run. So a graph with other nodes has no doors (server/graph_copies.h).
//
// Not thread-safe: one stream at a time launches the graph, with its lock held.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/dispatch/door_control.h"
#include "runtime/dispatch/work.h"

namespace smt::runtime::dispatch {

// Device memory for the words of graphs, in lines of 32 words. Any thread. Lines that are given back are kept
// for graphs that need as many.
class GraphWords {
public:
    static constexpr uint32_t kLineWords = 32;
    static constexpr uint32_t kLineBytes = kLineWords * sizeof(uint32_t);
    static constexpr uint32_t kMostLines = DoorMemory::kBytes / kLineBytes;

    explicit GraphWords(DoorMemory& memory) : memory_(memory) {}
    ~GraphWords();  // precondition: no graph is left
    GraphWords(const GraphWords&) = delete;
    GraphWords& operator=(const GraphWords&) = delete;

    const DriverApi& driver() const { return memory_.driver(); }
    CUresult take(uint32_t lines, CUdeviceptr* memory);  // at most kMostLines; contents are undefined
    void give(uint32_t lines, CUdeviceptr memory);

private:
    DoorMemory& memory_;
    std::mutex mutex_;  // guards the rest
    std::vector<CUdeviceptr> chunks_;
    uint32_t used_ = kMostLines;                         // lines of the last chunk
    std::map<uint32_t, std::vector<CUdeviceptr>> free_;  // by their number
};

class GraphDoors {
public:
    static constexpr uint32_t kMostLaunches = 3;  // under way
    // Words of a graph: the frontiers, and those of launches that others follow.
    static constexpr uint32_t kSets = 1 + kMostLaunches;
    static constexpr size_t kMostNodes =
        size_t{(GraphWords::kMostLines - 1) / kSets} * GraphWords::kLineWords;

    // `graph`: destroyed with this object, and what was instantiated of it.
    GraphDoors(GraphWords& words, CUgraph graph) : words_(words), driver_(words.driver()), graph_(graph) {}
    ~GraphDoors();  // precondition: no launch is under way
    GraphDoors(const GraphDoors&) = delete;
    GraphDoors& operator=(const GraphDoors&) = delete;

    // To be called in this order.
    CUresult open(size_t nodes);
    struct Kernel {
        CUgraphNode node = nullptr;
        size_t parameters = 0;  // their number, with the door's, which is the last
        uint32_t units = 0;     // of `unit` blocks each
        uint32_t unit = 1;
        uint64_t places = 1;  // blocks that the device runs at once
        uint64_t block_ps =
            0;  // device time of a block, perhaps too long by the time between launches; 0: not known
        bool waits = false;   // as door_pace() takes it
        bool alone = false;   // the next kernel that is added waits for this one, and for no other
        bool nested = false;  // in a child graph
    };
    CUresult add(const Kernel& kernel);
    // Also finds out whether the driver changes nodes of child graphs afterwards: a resume may have to.
    CUresult instantiate(unsigned long long flags);

    uint64_t blocks() const { return blocks_; }  // of all nodes
    ManagedFunction& form() { return form_; }    // stands for the graph where a kernel is asked for

    // Before each launch. `control`: a stream on which nothing ever waits. `*anew`: the stop word is cleared,
    // so a stop is lost that is written before `stream` gets there.
    CUresult prepare(CUstream stream, CUstream control, bool* anew);
    // From the begin, or from where the last one was stopped. `follows`: another one, which began at the
    // begin, may be under way. `*number`: of the launch.
    CUresult launch(CUstream stream, bool resumes, bool follows, uint64_t* number);
    CUresult stop(CUstream control);  // all that is under way. Does not wait
    // Launches from number `first` on are over, which were under way. `done`: of each the blocks that have
    // run since its begin. Waits for small copies.
    CUresult settle(CUstream errands, uint64_t first, uint64_t* done);

private:
    struct Node : Kernel {
        uint32_t done = 0;  // units that have run since the begin
        uint32_t from = 0;  // as the instantiated node has it
        smt::DoorStep step{};
    };

    // Set 0: frontiers. The others: of the launches that the last one followed, by their numbers.
    CUdeviceptr words(uint32_t set) const {
        const uint32_t each = (lines_ - 1) / kSets;
        return base_ + uint64_t{1 + set * each} * GraphWords::kLineBytes;
    }
    static uint32_t set_of(uint64_t number) { return 1 + static_cast<uint32_t>(number % kMostLaunches); }
    size_t bytes() const { return nodes_.size() * sizeof(uint32_t); }
    CUresult set_door(size_t index, uint32_t from);  // of the node, or once instantiated of that
    CUresult set_begin(Node& node, uint32_t from);
    DoorPace pace_of(const Node& node) const;
    CUresult chain_more();
    uint64_t settle_nodes();  // by read_

    GraphWords& words_;
    const DriverApi& driver_;
    const CUgraph graph_;
    CUgraphExec exec_ = nullptr;
    ManagedFunction form_;
    uint32_t lines_ = 0;
    CUdeviceptr base_ = 0;  // the stop word, and a line behind it the others; 0: none yet
    uint64_t blocks_ = 0;
    std::vector<Node> nodes_;
    std::vector<uint32_t> read_;  // frontiers
    bool cleared_ = false;        // the stop word is 0
    bool stopped_ = false;        // what is under way
    uint64_t last_ = 0;           // number of the last launch
    double scale_ = 1;            // from Kernel::block_ps to the time within the graph
    size_t chained_ = 0;          // nodes before have a pace by scale_
};

}  // namespace smt::runtime::dispatch
