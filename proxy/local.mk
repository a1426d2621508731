# parts of proxy/
