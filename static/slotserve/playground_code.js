// The conversation as a program: what the playground sends, for curl, Python and the environment.
"use strict";

(function () {
  // A text between single quotes of a shell.
  function quoted(text) {
    return "'" + text.replaceAll("'", "'\\''") + "'";
  }

  // JSON is Python, but for these three words, which are none of ours here.
  function python(value) {
    return JSON.stringify(value, null, 4).replaceAll("\n", "\n    ");
  }

  function curl(talk) {
    const body = { model: "auto", messages: talk.messages, ...talk.options, stream: true };
    return [
      `curl -N ${talk.address}/v1/chat/completions \\`,
      '  -H "Authorization: Bearer $SLOTSERVE_TOKEN" \\',
      '  -H "Content-Type: application/json" \\',
      "  -d " + quoted(JSON.stringify(body, null, 2)),
    ].join("\n");
  }

  function openai(talk) {
    return [
      "import os",
      "",
      "from openai import OpenAI",
      "",
      `client = OpenAI(base_url=${JSON.stringify(talk.address + "/v1")}, api_key=os.environ["SLOTSERVE_TOKEN"])`,
      "stream = client.chat.completions.create(",
      '    model="auto",',
      `    messages=${python(talk.messages)},`,
      ...Object.entries(talk.options).map(([name, value]) => `    ${name}=${value},`),
      "    stream=True,",
      ")",
      "for chunk in stream:",
      "    if chunk.choices and chunk.choices[0].delta.content:",
      '        print(chunk.choices[0].delta.content, end="", flush=True)',
    ].join("\n");
  }

  function anthropic(talk) {
    const system = talk.messages.find((message) => message.role === "system");
    const rest = talk.messages.filter((message) => message.role !== "system");
    const { max_tokens = 1024, ...others } = talk.options;
    return [
      "import os",
      "",
      "from anthropic import Anthropic",
      "",
      `client = Anthropic(base_url=${JSON.stringify(talk.address)}, api_key=os.environ["SLOTSERVE_TOKEN"])`,
      "with client.messages.stream(",
      '    model="auto",',
      ...(system ? [`    system=${JSON.stringify(system.content)},`] : []),
      `    messages=${python(rest)},`,
      `    max_tokens=${max_tokens},`,
      // Newer clients of Anthropic's have no such parameter of their own.
      ...(Object.keys(others).length ? [`    extra_body=${JSON.stringify(others)},`] : []),
      ") as stream:",
      "    for text in stream.text_stream:",
      '        print(text, end="", flush=True)',
    ].join("\n");
  }

  function environment(talk) {
    return [
      "export SLOTSERVE_TOKEN=ss_…",
      `export OPENAI_BASE_URL=${talk.address}/v1`,
      'export OPENAI_API_KEY="$SLOTSERVE_TOKEN"',
      `export ANTHROPIC_BASE_URL=${talk.address}`,
      'export ANTHROPIC_API_KEY="$SLOTSERVE_TOKEN"',
    ].join("\n");
  }

  window.Playground.code = { curl, openai, anthropic, environment };
})();
