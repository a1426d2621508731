# parts of icap-services/
