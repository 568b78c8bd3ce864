// What this process asks of its storage, counted where it leaves for the kernel.
//
// Device flushes are counted in functions of the C library that stand before the library's own, the
// other system calls where SQLite's Unix layer makes them (sqlite3_vfs::xSetSystemCall). Only the
// ledger uses SQLite, so what is counted between two looks is the ledger's.
#pragma once

#include <cstdint>

namespace praefectus::bench {

struct Asked {
  uint64_t flushes = 0;  // fsync and fdatasync.
  uint64_t calls = 0;    // All system calls on files, flushes included.
};

// Before the first database is opened.
void startCounting();
Asked asked();

// Whether a flush returns at once and is no flush. What is measured then is the processor alone.
void skipFlushes(bool skipped);

// The processor time that the thread which flushed last had used by then.
double processorTimeAtFlush();

}  // namespace praefectus::bench
