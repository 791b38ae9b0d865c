// The checks of the server lie in 16_server/: JSON and schemas, which tokens may come, answers,
// the API, HTTP, and many clients at once.
