/* A keyword spotter of 49 x 10 coefficients of sound and 12 words: a convolution, three times a channel at a time
   and then a pixel, a mean, a matrix. Its weights are numbers that stand for trained ones; they would lie in flash. */
#ifndef SPOTTER_H
#define SPOTTER_H

enum { WORDS = 12, WIDTH = 32, FRAMES = 49, COEFFICIENTS = 10 };
static float flash[8192];
static size_t flash_used;

static npu_value weight(npu_graph *g, uint32_t rank, const int64_t *dims)
{
    npu_spec spec = npu_spec_tensor(NPU_F32, rank, dims);
    float *data = flash + flash_used;
    size_t len = 0;
    npu_spec_len(&spec, &len);
    for (size_t i = 0; i < len; i++) {
        data[i] = (float)((flash_used + i) * 7919 % 201) / 500.0f - 0.2f;
    }
    flash_used += len;
    return npu_constant_ref(g, NULL, spec, data);
}

static npu_value conv(npu_graph *g, npu_value x, int64_t in, int64_t rows, int64_t columns, int64_t stride,
                      int64_t groups)
{
    npu_conv2d_attrs attrs = { { stride, stride }, { rows / 2, columns / 2 }, { 1, 1 }, groups };
    int64_t dims[4] = { WIDTH, in / groups, rows, columns }, out = WIDTH;
    npu_value w = weight(g, 4, dims), b = weight(g, 1, &out);
    return npu_relu(g, npu_conv2d(g, x, w, b, &attrs));
}

static npu_graph *spotter(const npu_allocator *allocator)
{
    npu_graph_desc desc = { .name = "spotter", .allocator = allocator };
    int64_t sound[4] = { 1, 1, FRAMES, COEFFICIENTS }, dims[2] = { WORDS, WIDTH }, words = WORDS;
    npu_graph *g = npu_graph_create(&desc);
    npu_value x = npu_input(g, "sound", npu_spec_tensor(NPU_F32, 4, sound));
    x = conv(g, x, 1, 10, 4, 2, 1);
    for (int i = 0; i < 3; i++) {
        x = conv(g, conv(g, x, WIDTH, 3, 3, 1, WIDTH), WIDTH, 1, 1, 1, 1);
    }
    x = npu_flatten(g, npu_adaptive_avg_pool2d(g, x, 1, 1), 1, -1);
    npu_value w = weight(g, 2, dims), b = weight(g, 1, &words);
    npu_output(g, "words", npu_softmax(g, npu_linear(g, x, w, b), -1));
    return g;
}

static void fill_sound(float *sound, int n)
{
    for (int i = 0; i < FRAMES * COEFFICIENTS; i++) {
        sound[i] = (float)((i * 37 + n) % 101) / 50.0f - 1;
    }
}
#endif
