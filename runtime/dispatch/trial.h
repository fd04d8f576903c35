// What is done to a stream's launches in place of a policy: stress, or measurements.
#pragma once

#include <string>

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class ManagedStream;

class Trial {
public:
    virtual ~Trial() = default;
    // Called again and again while the stream has launches that wait or run; says what was done through the stream.
    virtual void step(ManagedStream& stream, const schedule::Kernel& kernel) = 0;
    virtual void idle(ManagedStream&) {}             // likewise while it has none
    virtual bool samples() const { return false; }   // step() wants to know of running launches how far they are
    virtual std::string summary() const = 0;   // for the journal, at the end
};

}  // namespace smt::runtime::dispatch
