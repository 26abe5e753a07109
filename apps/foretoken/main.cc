#include "apps/foretoken/program/program.h"

int main(int argc, char** argv) { return foretoken::Main(argc, argv, nullptr); }
