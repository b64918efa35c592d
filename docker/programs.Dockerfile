# The console and the example editor as images. From the top of the sources:
#
#   docker build -f docker/programs.Dockerfile -t pg_interlock-console --target console .
#   docker build -f docker/programs.Dockerfile -t pg_interlock-editor --target editor .
#
# NODE chooses the tag of the official image of Node.js, 20 or later. How to run the console: docs/operations/containers.md.
# examples/editor/compose.yaml runs the editor.

ARG NODE=22-trixie-slim

# The archives of npm: the package for Node.js, and the console.
FROM node:${NODE} AS archives
WORKDIR /pg_interlock
COPY . .
RUN cd console && npm pack --silent --pack-destination / && mv /pg-interlock-console-*.tgz /console.tgz && \
    tar -xf /console.tgz -C / package/node_modules

FROM archives AS console-files
RUN npm install --prefix /installed --no-audit --no-fund /console.tgz

FROM archives AS editor-files
RUN cp -r examples/editor /installed && cd /installed && \
    npm install --no-save --no-audit --no-fund express pg && cp -r /package/node_modules/pg-interlock node_modules

# It listens on all addresses of its container. So it refuses to start without CONSOLE_PASSWORD or --user-header.
FROM node:${NODE} AS console
COPY LICENSE /usr/share/doc/pg_interlock/copyright
COPY --from=console-files /installed /opt/console
USER node
EXPOSE 8765
ENTRYPOINT ["node", "/opt/console/node_modules/pg-interlock-console/server.mjs", "--host", "0.0.0.0"]

# Nobody signs in: publish its port on a loopback address alone.
FROM node:${NODE} AS editor
COPY LICENSE /usr/share/doc/pg_interlock/copyright
COPY --from=editor-files /installed /opt/editor
USER node
ENV HOST=0.0.0.0
EXPOSE 8080
CMD ["node", "/opt/editor/server.mjs"]
