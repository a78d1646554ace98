// SPDX-License-Identifier: MIT
#include "core/session/packed_step.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/base/varint.h"
#include "core/session/row_inserts.h"
#include "core/session/session_writer.h"
#include "tests/unit/memory_rows.h"

namespace hw::core {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

StepContents madeUpStep() {
    StepContents rows;
    for (std::int64_t i = 0; i < 40; ++i) {
        OpRow op;
        op.id = 7 + i, op.seq = 100 + 3 * i, op.beginNs = 5'000 * i;
        op.name = i % 2 ? "aten::mul" : "aten::add", op.overload = i % 3 ? "Tensor" : "";
        op.phase = static_cast<Phase>(i % 4);
        op.thread = i % 2, op.duration = Nanoseconds(100 + i), op.workspace = Bytes(i % 5);
        op.random = i % 7 == 0;
        if (i % 2) op.layer = i % 3, op.liveBytes = 1000 - i;
        if (i % 4 == 1) op.stack = i;
        for (std::int64_t k = 0; k < i % 4; ++k)
            op.inputs.push_back({50 + i - k, static_cast<std::int32_t>(k)});
        op.outputs = {{60 + i, i % 2 == 0}};
        if (i % 3 == 0) op.writes = {{3, static_cast<std::int32_t>(i)}, {90, 0}};
        op.args =
            i % 5 == 4 ? "" : R"({"a":[{"t":)" + std::to_string(50 + i) + R"(},{"t":-3}],"k":{}})";
        rows.ops.push_back(op);
        StorageRow storage;
        storage.id = 200 + i, storage.bytes = Bytes(1 << (i % 20));
        storage.device = i % 2 ? "cpu" : "cuda:0";
        storage.category = static_cast<Category>(i % kCategoryCount);
        storage.allocSeq = op.seq, storage.freeSeq = op.seq + 2;
        if (i % 2) storage.creator = op.id, storage.address = 4096 * i;
        if (i % 3) storage.layer = i;
        if (i % 4 == 0) storage.stack = i;
        rows.storages.push_back(storage);
        TensorRow tensor;
        tensor.id = 300 + 2 * i, tensor.storage = storage.id, tensor.dtype = "float32";
        tensor.sizes = "[2,3]", tensor.strides = "[3,1]", tensor.offset = i;
        if (i % 2) tensor.creator = op.id;
        rows.tensors.push_back(tensor);
    }
    rows.ops[3].beginNs = kHuge, rows.ops[4].beginNs = -kHuge;  // any two have a difference
    // No ids, or none that could be put back as they were.
    for (const char* text :
         {R"({"t":007})", R"({"t":-0})", R"({"t":})", R"({"t":99999999999999999999})",
          "{\"t\":5}\1{\"t\":6}", R"(["{\"t\":5}"])", R"({"t":)"}) {
        rows.ops.push_back(rows.ops.back());
        rows.ops.back().args = text;
    }
    return rows;
}

/// Rows as their tables have them.
std::string tableText(const StepContents& rows) {
    SessionWriter session = SessionWriter::inMemory();
    RowInserts to(databaseOf(session), "");
    std::int64_t id = 0;
    for (OpRow row : rows.ops) row.id = row.seq = ++id, to.insert(row);
    for (const StorageRow& row : rows.storages) to.insert(row);
    for (const TensorRow& row : rows.tensors) to.insert(row);
    std::string all;
    for (const OpRow& row : rows.ops)
        all += std::to_string(row.id) + ":" + std::to_string(row.seq) + "\n";
    for (const char* table : {"ops", "op_inputs", "op_outputs", "op_writes", "op_stacks",
                              "storages", "storage_stacks", "tensors"}) {
        Statement columns(databaseOf(session), "SELECT count(*) FROM pragma_table_info(?)");
        columns.bind(1, std::string_view(table)).step();
        Statement from(databaseOf(session), std::string("SELECT * FROM ") + table);
        while (from.step()) {
            for (int i = 0; i < columns.integer(0); ++i)
                all += (from.isNull(i) ? "NULL" : from.text(i)) + "|";
            all += "\n";
        }
    }
    return all;
}

TEST(PackedStep, ComesBackRowForRow) {
    const StepContents rows = madeUpStep();
    const auto blob = packStep(rows);
    ASSERT_TRUE(blob);
    StepContents back;
    ASSERT_EQ(unpackStep(*blob, OpDetail::Everything, back), "");
    EXPECT_EQ(tableText(back), tableText(rows));
    EXPECT_LT(blob->size(), tableText(rows).size() / 3);
    const auto counts = packedCounts(*blob);
    ASSERT_TRUE(counts);
    EXPECT_EQ(counts->ops, 47);
    EXPECT_EQ(counts->storages, 40);
    EXPECT_EQ(counts->tensors, 40);
}

TEST(PackedStep, LessDetailIsAPart) {
    const StepContents rows = madeUpStep();
    const auto blob = packStep(rows);
    StepContents edges, spans;
    ASSERT_EQ(unpackStep(*blob, OpDetail::Edges, edges), "");
    ASSERT_EQ(unpackStep(*blob, OpDetail::Spans, spans), "");
    StepContents expected = rows;
    for (OpRow& op : expected.ops) op.args.clear();
    EXPECT_EQ(tableText(edges), tableText(expected));
    for (OpRow& op : expected.ops)
        op.inputs.clear(), op.outputs.clear(), op.writes.clear(), op.stack.reset();
    expected.storages.clear(), expected.tensors.clear();
    EXPECT_EQ(tableText(spans), tableText(expected));
}

TEST(PackedStep, AStepWithoutRowsIsOne) {
    const auto blob = packStep({});
    ASSERT_TRUE(blob);
    StepContents back = madeUpStep();
    EXPECT_EQ(unpackStep(*blob, OpDetail::Everything, back), "");
    EXPECT_TRUE(back.ops.empty() && back.storages.empty() && back.tensors.empty());
}

TEST(PackedStep, WhatIsCutShortOrChangedIsRefused) {
    const auto whole = packStep(madeUpStep());
    StepContents back;
    for (std::size_t size = 0; size < whole->size(); ++size)
        EXPECT_EQ(unpackStep(std::span(*whole).first(size), OpDetail::Everything, back),
                  "is damaged")
            << size;
    std::vector<std::byte> longer = *whole;
    longer.push_back({});
    EXPECT_EQ(unpackStep(longer, OpDetail::Everything, back), "is damaged");
    for (std::size_t i = 1; i < whole->size(); ++i) {  // zlib's checksum sees to it
        std::vector<std::byte> changed = *whole;
        changed[i] ^= std::byte{0x55};
        EXPECT_NE(unpackStep(changed, OpDetail::Everything, back), "") << i;
    }
}

TEST(PackedStep, ANewerFormatIsNamed) {
    auto blob = *packStep(madeUpStep());
    blob[0] = std::byte{2};
    StepContents back;
    EXPECT_EQ(unpackStep(blob, OpDetail::Everything, back),
              "is packed in format 2, this program reads up to 1");
    EXPECT_FALSE(packedCounts(blob));
}

TEST(PackedStep, NumbersBeyondAllReasonAreNotBelieved) {
    VarintWriter head;
    head.unsignedNumber(1);
    for (int i = 0; i < 3; ++i) head.unsignedNumber(std::uint64_t{1} << 40);
    head.unsignedNumber(std::uint64_t{1} << 50);
    StepContents back;
    EXPECT_EQ(unpackStep(head.bytes(), OpDetail::Everything, back), "is damaged");
}

TEST(PackedStep, ALargeStepGoesIntoTables) {
    StepContents rows;
    rows.ops.resize(3);
    std::int64_t id = 0;
    for (OpRow& op : rows.ops) op.id = op.seq = ++id, op.name = "op", op.args.assign(64 << 20, 'x');
    EXPECT_FALSE(packStep(rows));
    SessionWriter session = SessionWriter::inMemory();
    StepRow step;
    step.firstSeq = 1, step.endSeq = 4;
    ASSERT_TRUE(session.insert(step, {}, rows));
    EXPECT_EQ(test::figure(session, "SELECT count(*) FROM ops"), 3);
    EXPECT_EQ(test::figure(session, "SELECT count(*) FROM packed_steps"), 0);
    EXPECT_EQ(session.ops(0)->size(), 3u);
}

}  // namespace
}  // namespace hw::core
