// SPDX-License-Identifier: MIT
// What an agent sends, made up by tests of the recorder.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "core/session/access.h"
#include "core/session/session.h"
#include "profiler/recorder/assembler.h"

namespace hw::profiler {

namespace fs = std::filesystem;
using wire::Type;
using I64 = std::int64_t;

class Recorder : public ::testing::Test {
protected:
    Recorder() : folder_(fs::temp_directory_path() / ("recorder-" + std::to_string(getpid()))) {
        fs::create_directory(folder_);
        assembler_ = std::make_unique<Assembler>(path());
    }
    ~Recorder() override { fs::remove_all(folder_); }

    std::string path() const { return (folder_ / "s.hws").string(); }

    // The wire's fields, in a payload.
    struct Fields {
        std::vector<std::byte> bytes;
        template <class Value>
        requires std::is_arithmetic_v<Value>
        void one(Value value) {
            const auto* begin = reinterpret_cast<const std::byte*>(&value);
            bytes.insert(bytes.end(), begin, begin + sizeof(value));
        }
        void one(const std::string& text) {
            one(static_cast<std::uint32_t>(text.size()));
            const auto* begin = reinterpret_cast<const std::byte*>(text.data());
            bytes.insert(bytes.end(), begin, begin + text.size());
        }
    };
    template <class... Values>
    core::Status send(Type type, const Values&... values) {
        Fields fields;
        (fields.one(values), ...);
        return assembler_->handle({type, fields.bytes});
    }
    template <class... Values>
    void ok(Type type, const Values&... values) {
        const core::Status status = send(type, values...);
        EXPECT_TRUE(status) << (status ? "" : status.error().what);
    }

    void introduce() { introduce(2, "r@host:29500"); }
    void introduce(I64 worldSize, const std::string& run) {
        ok(Type::Hello, I64{42});
        ok(Type::Process, std::string("pytorch"), std::string("1.13"), std::string("train"), I64{1},
           I64{0}, worldSize, run);
        ok(Type::Layer, I64{0}, I64{-1}, std::string("(root)"), std::string("Net"));
    }
    static constexpr auto kUnknown = static_cast<std::uint8_t>(core::Category::Unknown);
    core::Status storage(I64 id, I64 seq, I64 bytes, I64 creator) {
        return send(Type::Storage, id, seq, bytes, creator, I64{0}, I64{4096}, kUnknown,
                    std::string("cpu"));
    }
    core::Status tensor(I64 id, I64 storage, I64 creator) {
        return send(Type::Tensor, id, storage, creator, I64{0}, std::string("float32"),
                    std::uint16_t{1}, I64{25}, I64{1});
    }
    /// An op of one input and one output.
    core::Status op(I64 id, I64 seq, I64 in, int version, I64 out, bool makes, I64 written = -1,
                    int before = 0) {
        Fields fields;
        for (const I64 value :
             {id, seq, I64{1000}, I64{50}, I64{16}, I64{100}, I64{0}, I64{1}, stack_})
            fields.one(value);
        fields.one(std::uint8_t{1});
        fields.one(std::uint8_t{0});
        fields.one(opName_);
        fields.one(std::string());
        fields.one("{\"a\":[{\"t\":" + std::to_string(in) + "},\"{\\\"t\\\":7}\"],\"k\":{}}");
        fields.one(std::uint32_t{1});
        fields.one(in);
        fields.one(std::int32_t{version});
        fields.one(std::uint32_t{1});
        fields.one(out);
        fields.one(static_cast<std::uint8_t>(makes));
        fields.one(std::uint32_t{written >= 0});
        if (written >= 0) {
            fields.one(written);
            fields.one(std::int32_t{before});
        }
        return assembler_->handle({Type::Op, fields.bytes});
    }
    void end(I64 seq, std::initializer_list<I64> finals) {
        Fields fields;
        for (const I64 value : {seq, I64{9000}, I64{200}, I64{300}}) fields.one(value);
        fields.one(std::string("{\"num_threads\":1}"));
        fields.one(static_cast<std::uint32_t>(finals.size()));
        for (const I64 id : finals) fields.one(id);
        EXPECT_TRUE(assembler_->handle({Type::StepEnd, fields.bytes}));
    }

    /// A constant (storage 0), the start of a step, and an op that makes storage 1 from it.
    void beginStep() {
        introduce();
        EXPECT_TRUE(storage(0, 0, 100, -1));
        EXPECT_TRUE(tensor(0, 0, -1));
        ok(Type::StepStart, I64{1}, I64{500}, I64{100});
        EXPECT_TRUE(storage(1, 1, 100, 0));
        EXPECT_TRUE(tensor(1, 1, 0));
        EXPECT_TRUE(op(0, 1, 0, 0, 1, true));
    }

    core::Status activities(std::initializer_list<wire::Activity> list) {
        std::vector<std::byte> bytes(4 + list.size() * sizeof(wire::Activity));
        const auto count = static_cast<std::uint32_t>(list.size());
        std::memcpy(bytes.data(), &count, 4);
        std::memcpy(bytes.data() + 4, list.begin(), list.size() * sizeof(wire::Activity));
        return assembler_->handle({Type::Activities, bytes});
    }

    /// Of the bytes that device 0 has taken from its driver.
    std::optional<I64> reserved(const std::string& what) const {
        const auto session = core::Session::open(path());
        if (!session) return std::nullopt;
        core::Statement asked(core::databaseOf(*session),
                              "SELECT " + what +
                                  " FROM series JOIN series_buckets ON series = series.id"
                                  " WHERE name = 'device 0 reserved'");
        return asked.step() ? asked.optionalInteger(0) : std::nullopt;
    }

    fs::path folder_;
    std::string opName_ = "aten::relu";
    I64 stack_ = -1;  // of the ops that follow
    std::unique_ptr<Assembler> assembler_;
};

}  // namespace hw::profiler
