/* Answer images of digits from C, by a module that mlc compiled. Nothing of Python or mlc is needed to run it.

       mlc compile model.py:predict --emit=ext,header -o predictor.so        predict(images: float32[B, 64]) -> [B, 10]
       cc -O2 examples/predict.c -I. ./predictor.so -Wl,-rpath,. -o predict
       ./predict images.f32

   The file holds rows of 64 floats; of each, the program prints the class with the highest score. */
#include <stdio.h>
#include <stdlib.h>

#include "predictor.h"

enum { PIXELS = 64, CLASSES = 10 };

static float *read_floats(const char *path, long *count) {
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    fseek(file, 0, SEEK_END);
    *count = ftell(file) / (long)sizeof(float);
    rewind(file);
    float *data = malloc((size_t)(*count > 0 ? *count : 1) * sizeof(float));
    if (data != NULL && fread(data, sizeof(float), (size_t)*count, file) != (size_t)*count) {
        free(data);
        data = NULL;
    }
    fclose(file);
    return data;
}

static int best(const float *scores) {
    int found = 0;
    for (int i = 1; i < CLASSES; i++)
        if (scores[i] > scores[found])
            found = i;
    return found;
}

int main(int argc, char **argv) {
    long count = 0;
    float *images = argc == 2 ? read_floats(argv[1], &count) : NULL;
    if (images == NULL || count % PIXELS != 0) {
        fprintf(stderr, "usage: %s FILE, which holds rows of %d floats\n", argv[0], PIXELS);
        return 2;
    }
    int64_t rows = count / PIXELS;
    float *scores = malloc((size_t)(rows + 1) * CLASSES * sizeof(float));
    struct mlc_context context = {0};
    int32_t status = scores == NULL ? MLC_OUT_OF_MEMORY : predict(&context, rows, images, scores);
    if (status != MLC_OK)
        fprintf(stderr, "predict: status %d\n", (int)status);
    for (int64_t row = 0; status == MLC_OK && row < rows; row++)
        printf("%d\n", best(scores + row * CLASSES));
    mlc_context_free(&context);
    free(scores);
    free(images);
    return status == MLC_OK ? 0 : 1;
}
