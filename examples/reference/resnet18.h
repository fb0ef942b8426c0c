/* ResNet-18 in the model DSL. Layers are plain structs: a residual block is a function that adds them. */
#ifndef NPU_EXAMPLE_RESNET18_H
#define NPU_EXAMPLE_RESNET18_H

static npu_value conv_bn(npu_model *m, npu_value x, const char *conv, const char *bn, int64_t in,
                         int64_t out, int64_t kernel, int64_t stride)
{
    npu_layer_conv2d c = npu_layer_conv2d_init(conv, in, out, kernel);
    npu_layer_batch_norm n = npu_layer_batch_norm_init(bn, out);
    c.no_bias = true;
    c.attrs.stride[0] = c.attrs.stride[1] = stride;
    c.attrs.padding[0] = c.attrs.padding[1] = kernel / 2;
    return npu_model_add(m, &n.base, npu_model_add(m, &c.base, x));
}

static npu_value basic_block(npu_model *m, npu_value x, int layer, int block, int64_t in, int64_t out, int64_t stride)
{
    npu_graph *g = npu_model_graph(m);
    npu_value shortcut = x;
    char name[4][40];
    snprintf(name[0], sizeof name[0], "layer%d.%d.conv1", layer, block);
    snprintf(name[1], sizeof name[1], "layer%d.%d.bn1", layer, block);
    snprintf(name[2], sizeof name[2], "layer%d.%d.conv2", layer, block);
    snprintf(name[3], sizeof name[3], "layer%d.%d.bn2", layer, block);
    npu_value y = npu_relu(g, conv_bn(m, x, name[0], name[1], in, out, 3, stride));
    y = conv_bn(m, y, name[2], name[3], out, out, 3, 1);
    if (stride != 1 || in != out) {
        snprintf(name[0], sizeof name[0], "layer%d.%d.downsample.0", layer, block);
        snprintf(name[1], sizeof name[1], "layer%d.%d.downsample.1", layer, block);
        shortcut = conv_bn(m, x, name[0], name[1], in, out, 1, stride);
    }
    return npu_relu(g, npu_add(g, y, shortcut));
}

static npu_model *resnet18(void)
{
    npu_model *m = npu_model_create(NULL);
    npu_graph *g = npu_model_graph(m);
    npu_max_pool2d_attrs pool = { .kernel_size = { 3, 3 }, .stride = { (int64_t[]){ 2, 2 }, 2 }, .padding = { 1, 1 } };
    npu_value x = npu_model_input(m, "input", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, 3, 224, 224 }));
    x = npu_relu(g, conv_bn(m, x, "conv1", "bn1", 3, 64, 7, 2));
    x = npu_max_pool2d(g, x, &pool);
    for (int layer = 1, in = 64, out = 64; layer <= 4; layer++, in = out, out *= 2) {
        x = basic_block(m, x, layer, 0, in, out, layer == 1 ? 1 : 2);
        x = basic_block(m, x, layer, 1, out, out, 1);
    }
    x = npu_flatten(g, npu_adaptive_avg_pool2d(g, x, 1, 1), 1, -1);
    npu_value w = npu_param(g, "fc.weight", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 1000, 512 }));
    npu_value b = npu_param(g, "fc.bias", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 1000 }));
    npu_model_output(m, "output", npu_linear(g, x, w, b));
    return m;
}

static int resnet18_is_norm(const char *name) { return strstr(name, "bn") || strstr(name, "downsample.1"); }

#endif
