# parts of tests/
