// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/format.h"

#include <QCoreApplication>
#include <cmath>

namespace hw::viewer {

SizeUnit SizeUnit::fitting(core::Bytes largest) {
    const double bytes = std::fabs(static_cast<double>(largest.count()));
    if (bytes >= 1e9) return {1e9, QStringLiteral("GB"), 2};
    if (bytes >= 1e6) return {1e6, QStringLiteral("MB"), bytes >= 1e8 ? 1 : 2};
    if (bytes >= 1e3) return {1e3, QStringLiteral("kB"), bytes >= 1e5 ? 1 : 2};
    return {1, QStringLiteral("B"), 0};
}

QString SizeUnit::number(core::Bytes size) const {
    return QString::number(value(size), 'f', digits);
}
QString SizeUnit::text(core::Bytes size) const {
    return number(size) + QLatin1Char(' ') + name;
}

TimeFormat TimeFormat::fitting(core::Nanoseconds longest) {
    const double ms = milliseconds(longest);
    TimeFormat format;
    constexpr double kSecond = 1e3, kMinute = 60 * kSecond;
    if (ms >= 10 * kMinute) return {1, QStringLiteral("min"), kMinute};
    if (ms >= 10 * kSecond) return {ms >= 100 * kSecond ? 1 : 2, QStringLiteral("s"), kSecond};
    format.digits = ms >= 1000 ? 0 : ms >= 100 ? 1 : ms >= 10 ? 2 : 3;
    return format;
}

QString TimeFormat::number(core::Nanoseconds time) const {
    return QString::number(milliseconds(time) / scale, 'f', digits);
}
QString TimeFormat::text(core::Nanoseconds time) const {
    return number(time) + QLatin1Char(' ') + unit;
}

double milliseconds(core::Nanoseconds time) {
    return static_cast<double>(time.count()) / 1e6;
}
core::Nanoseconds nanoseconds(double milliseconds) {
    return core::Nanoseconds(std::llround(milliseconds * 1e6));
}

QString percentText(double ratio, int digits) {
    return QString::number(ratio * 100, 'f', digits) + QStringLiteral(" %");
}

QString overheadText(double overhead) {
    double percent = (overhead - 1) * 100;
    if (std::fabs(percent) < 0.005) percent = 0;  // no "-0.00 %"
    return (percent >= 0 ? QStringLiteral("+") : QString()) + QString::number(percent, 'f', 2) +
           QStringLiteral(" %");
}

QString secondsText(double seconds) {
    if (seconds >= 600) return QString::number(seconds / 60, 'f', 1) + QStringLiteral(" min");
    return QString::number(seconds, 'f',
                           seconds < 0.1   ? 3
                           : seconds < 100 ? 2
                                           : 1) +
           QStringLiteral(" s");
}

QString shortOpName(std::string_view name) {
    const std::size_t colon = name.rfind("::");
    return toQString(colon == std::string_view::npos ? name : name.substr(colon + 2));
}

QString shortKernelName(std::string_view name) {
    constexpr std::string_view kReturns = "void ", kAnonymous = "(anonymous namespace)::";
    if (name.starts_with(kReturns)) name.remove_prefix(kReturns.size());
    std::size_t from = 0;
    for (std::size_t at = name.find(kAnonymous); at == from; at = name.find(kAnonymous, from))
        from = at + kAnonymous.size();
    std::size_t end = std::min(name.find_first_of("<(", from), name.size());
    if (const std::size_t at = name.find(kAnonymous, from); at == end)  // deeper in its path
        return shortKernelName(name.substr(at + kAnonymous.size()));
    while (end > from && name[end - 1] == ' ') --end;
    return shortOpName(name.substr(from, end - from));
}

QString categoryText(core::Category category) {
    return category == core::Category::Unknown
               ? QCoreApplication::translate("format", "uncategorised")
               : toQString(core::categoryName(category));
}

QString toQString(std::string_view text) {
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

}  // namespace hw::viewer
