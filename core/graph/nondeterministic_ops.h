// SPDX-License-Identifier: MIT
// Ops that PyTorch itself calls not deterministic where torch.use_deterministic_algorithms is off:
// two runs of the same op on the same bytes may differ. In C++17, see indices.h.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace hw::core {

/// `op` such as "aten::index_put_". Source: the documentation of torch.use_deterministic_algorithms
/// and, for convolutions, "Reproducibility" in that of cuDNN.
inline bool isNondeterministic(std::string_view op, bool onGpu) {
    using Name = std::string_view;
    constexpr std::array kAnywhere{
        Name("_index_put_impl"),
        Name("_unsafe_index_put"),
        Name("index_copy"),
        Name("index_put"),
        Name("put"),
    };
    constexpr std::array kOnGpus{
        Name("_adaptive_avg_pool2d_backward"),
        Name("_adaptive_avg_pool3d_backward"),
        Name("_ctc_loss_backward"),
        Name("_cudnn_ctc_loss"),
        Name("_embedding_bag_dense_backward"),
        Name("_embedding_bag_per_sample_weights_backward"),
        Name("_scaled_dot_product_cudnn_attention_backward"),
        Name("_scaled_dot_product_efficient_attention_backward"),
        Name("_scaled_dot_product_flash_attention_backward"),
        Name("_upsample_bicubic2d_aa_backward"),
        Name("_upsample_bilinear2d_aa_backward"),
        Name("adaptive_max_pool2d_backward"),
        Name("adaptive_max_pool3d_backward"),
        Name("avg_pool3d_backward"),
        Name("bincount"),
        Name("convolution_backward"),
        Name("cudnn_convolution_transpose"),
        Name("cumsum"),
        Name("embedding_dense_backward"),
        Name("fractional_max_pool2d_backward"),
        Name("fractional_max_pool3d_backward"),
        Name("grid_sampler_2d_backward"),
        Name("grid_sampler_3d_backward"),
        Name("histc"),
        Name("index_add"),
        Name("index_reduce"),
        Name("kthvalue"),
        Name("max_pool2d_with_indices_backward"),
        Name("max_pool3d_with_indices_backward"),
        Name("max_unpool2d"),
        Name("max_unpool3d"),
        Name("median"),
        Name("nanmedian"),
        Name("nll_loss2d_backward"),
        Name("nll_loss2d_forward"),
        Name("reflection_pad1d_backward"),
        Name("reflection_pad2d_backward"),
        Name("reflection_pad3d_backward"),
        Name("replication_pad1d_backward"),
        Name("replication_pad2d_backward"),
        Name("replication_pad3d_backward"),
        Name("scatter"),
        Name("scatter_add"),
        Name("scatter_reduce"),
        Name("upsample_bicubic2d_backward"),
        Name("upsample_bilinear2d_backward"),
        Name("upsample_linear1d_backward"),
        Name("upsample_trilinear3d_backward"),
    };
    constexpr Name kFramework = "aten::";
    if (op.substr(0, kFramework.size()) != kFramework) return false;
    op.remove_prefix(kFramework.size());
    op = op.substr(0, op.find('.'));  // of an overload
    if (!op.empty() && op.back() == '_') op.remove_suffix(1);
    const auto has = [&](const auto& names) {
        return std::binary_search(names.begin(), names.end(), op);
    };
    return has(kAnywhere) || (onGpu && has(kOnGpus));
}

}  // namespace hw::core
