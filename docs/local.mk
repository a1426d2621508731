# parts of docs/
