// RocksDB as it is quickest for whole, immutable data in memory: one PlainTable file, mapped, a hash index over whole keys,
// values read where they lie; open for reading only, where it is not asked by groups (a CompactedDB: no memtable is looked at).
#include <rocksdb/db.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr size_t kKeyBytes = 8;
// RocksDB groups lookups by 32 inside; larger groups of ours only make its own arrays larger.
constexpr size_t kGroup = 128;

struct Table {
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::PinnableSlice> values{kGroup};
  std::vector<rocksdb::Status> statuses{kGroup};
};

struct Sink {
  char* out;
  uint64_t sum = 0;

  void take(const rocksdb::Slice& value) {
    if (out != nullptr) {
      memcpy(out, value.data(), value.size());
      out += value.size();
    } else {
      uint64_t word;
      memcpy(&word, value.data(), sizeof word);
      sum += word;
    }
  }
};

rocksdb::Options options_of() {
  rocksdb::PlainTableOptions table;
  table.user_key_len = kKeyBytes;
  // Every key asked for is there.
  table.bloom_bits_per_key = 0;
  table.hash_table_ratio = 0.5;
  table.store_index_in_file = false;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.allow_mmap_reads = true;
  options.max_open_files = -1;
  options.compression = rocksdb::kNoCompression;
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(kKeyBytes));
  options.table_factory.reset(rocksdb::NewPlainTableFactory(table));
  options.target_file_size_base = (uint64_t{1} << 31) - 1;
  options.write_buffer_size = 256 << 20;
  return options;
}

// 0, or 1 with the reason on standard error.
int failed(const rocksdb::Status& status) {
  if (status.ok()) return 0;
  fprintf(stderr, "rocksdb: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace

extern "C" {

// A table, for reading only or for writing too, which makes it. Null, with the reason on standard error, if it cannot be opened.
Table* plain_table_open(const char* dir, int writes) {
  rocksdb::DB* db = nullptr;
  auto status = writes ? rocksdb::DB::Open(options_of(), dir, &db)
                       : rocksdb::DB::OpenForReadOnly(options_of(), dir, &db);
  if (failed(status)) return nullptr;
  auto* table = new Table;
  table->db.reset(db);
  return table;
}

void plain_table_close(Table* table) { delete table; }

int plain_table_put(Table* table, const char* key, const char* value, size_t value_bytes) {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return failed(table->db->Put(options, rocksdb::Slice(key, kKeyBytes), rocksdb::Slice(value, value_bytes)));
}

// Makes one file of all rows. Returns how many files there are, 0 if it failed.
size_t plain_table_finish(Table* table) {
  rocksdb::CompactRangeOptions compact;
  compact.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  if (failed(table->db->Flush(rocksdb::FlushOptions()))) return 0;
  if (failed(table->db->CompactRange(compact, nullptr, nullptr))) return 0;
  std::vector<rocksdb::LiveFileMetaData> files;
  table->db->GetLiveFilesMetaData(&files);
  return files.size();
}

// Reads `count` keys of 8 bytes, end to end, one by one. Values are copied to `out` in order, or without it their first words
// added up in `sum`. How many were found; -1 if a read failed.
int64_t plain_table_get(Table* table, const char* keys, size_t count, char* out, uint64_t* sum) {
  rocksdb::ReadOptions options;
  auto* family = table->db->DefaultColumnFamily();
  auto& value = table->values[0];
  Sink sink{out};
  int64_t found = 0;
  for (size_t index = 0; index < count; index++) {
    auto status = table->db->Get(options, family, rocksdb::Slice(keys + index * kKeyBytes, kKeyBytes), &value);
    if (status.IsNotFound()) continue;
    if (failed(status)) return -1;
    sink.take(value);
    value.Reset();
    found++;
  }
  *sum = sink.sum;
  return found;
}

// The same by MultiGet.
int64_t plain_table_multi_get(Table* table, const char* keys, size_t count, char* out, uint64_t* sum) {
  rocksdb::ReadOptions options;
  auto* family = table->db->DefaultColumnFamily();
  Sink sink{out};
  int64_t found = 0;
  rocksdb::Slice slices[kGroup];
  for (size_t start = 0; start < count; start += kGroup) {
    size_t group = std::min(kGroup, count - start);
    for (size_t index = 0; index < group; index++) {
      slices[index] = rocksdb::Slice(keys + (start + index) * kKeyBytes, kKeyBytes);
    }
    table->db->MultiGet(options, family, group, slices, table->values.data(), table->statuses.data());
    for (size_t index = 0; index < group; index++) {
      if (table->statuses[index].IsNotFound()) continue;
      if (failed(table->statuses[index])) return -1;
      sink.take(table->values[index]);
      table->values[index].Reset();
      found++;
    }
  }
  *sum = sink.sum;
  return found;
}
}
